# nacre: allowed low
import asyncio

import aiohttp


async def fetch(session, url):
    async with session.get(url) as answer:
        return url, answer.status


async def main(urls):
    async with aiohttp.ClientSession() as session:
        for url, status in await asyncio.gather(*(fetch(session, url) for url in urls)):
            print(status, url)


asyncio.run(main(["https://example.org/", "https://example.com/"]))
