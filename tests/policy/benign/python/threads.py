# nacre: allowed low
import queue
import threading
from concurrent.futures import ThreadPoolExecutor


def work(jobs, done):
    while (job := jobs.get()) is not None:
        done.append(job ** 2)


jobs, done = queue.Queue(), []
threads = [threading.Thread(target=work, args=(jobs, done)) for _ in range(4)]
for thread in threads:
    thread.start()
for number in range(20):
    jobs.put(number)
for _ in threads:
    jobs.put(None)
for thread in threads:
    thread.join()
with ThreadPoolExecutor(4) as pool:
    print(sum(pool.map(abs, done)))
