# nacre: allowed low
import unittest
from unittest import mock


class Stack(list):
    def push(self, item):
        self.append(item)


class StackTest(unittest.TestCase):
    def setUp(self):
        self.stack = Stack()

    def test_push_and_pop(self):
        self.stack.push(1)
        self.assertEqual(self.stack.pop(), 1)

    def test_empty(self):
        with self.assertRaises(IndexError):
            self.stack.pop()

    @mock.patch("os.system")
    def test_patched(self, system):
        system.return_value = 0
        self.assertEqual(system("true"), 0)


if __name__ == "__main__":
    unittest.main()
