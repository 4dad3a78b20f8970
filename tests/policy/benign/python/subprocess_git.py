# nacre: allowed low
import subprocess


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


print(git("log", "--oneline", "-5"))
subprocess.check_call(["ls", "-l"])
