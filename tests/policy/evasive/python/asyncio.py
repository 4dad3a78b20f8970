# nacre: language policy.import
# policy: strict
# input: id
import asyncio


async def f(name):
    await (await asyncio.create_subprocess_exec(name)).wait()


asyncio.run(f(input()))
