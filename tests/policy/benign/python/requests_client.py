# nacre: allowed low
import json
import sys

import requests


def releases(project):
    answer = requests.get(f"https://pypi.example/{project}/json", timeout=10)
    answer.raise_for_status()
    return answer.json()["releases"]


json.dump(releases(sys.argv[1]), sys.stdout)
