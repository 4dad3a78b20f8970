# nacre: allowed low
import pytest


@pytest.fixture
def numbers(tmp_path):
    file = tmp_path / "numbers.txt"
    file.write_text("1 2 3")
    return file


@pytest.mark.parametrize("factor, total", [(1, 6), (2, 12)])
def test_sum(numbers, factor, total):
    assert sum(int(word) * factor for word in numbers.read_text().split()) == total
