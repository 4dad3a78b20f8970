# nacre: allowed low
import argparse
import os
import sys


def parse():
    parser = argparse.ArgumentParser(description="Counts words")
    parser.add_argument("files", nargs="*", type=argparse.FileType("r"), default=[sys.stdin])
    parser.add_argument("--top", type=int, default=10)
    return parser.parse_args()


def main():
    arguments = parse()
    counts = {}
    for file in arguments.files:
        for word in file.read().split():
            counts[word] = counts.get(word, 0) + 1
    width = os.get_terminal_size().columns if sys.stdout.isatty() else 80
    for word, number in sorted(counts.items(), key=lambda item: -item[1])[: arguments.top]:
        print(f"{word[:width]:20} {number}")


if __name__ == "__main__":
    sys.exit(main())
