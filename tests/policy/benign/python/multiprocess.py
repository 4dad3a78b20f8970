# nacre: allowed low
from multiprocessing import Pool


def square(number):
    return number * number


if __name__ == "__main__":
    with Pool(4) as pool:
        print(pool.map(square, range(10)))
