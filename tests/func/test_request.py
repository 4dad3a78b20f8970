"""Requests: golden faults, and the parser held against the published JSON Schema."""

import json
import subprocess

import jsonschema
import pytest

from conftest import BUILD, ROOT

CHECK = BUILD / "tests/request-check"
SCHEMA = json.loads((ROOT / "docs/request.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def cases():
    """(request, whether a schema can tell, faults) of each request in the file."""
    found = []
    for line in (ROOT / "tests/request/cases").read_text().splitlines():
        if line.startswith("  "):
            found[-1][2].append(line[2:])
        elif line and not line.startswith("#"):
            found.append((line.removeprefix("! "), not line.startswith("!"), []))
    return found


def check(request):
    done = subprocess.run([CHECK], input=request, capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done
    assert (done.returncode == 0) == (done.stdout == "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("request_text, in_schema, faults", cases())
def test_faults(request_text, in_schema, faults):
    assert check(request_text) == faults
    if in_schema:
        errors = [error.message for error in VALIDATOR.iter_errors(json.loads(request_text))]
        assert bool(errors) == bool(faults), errors


def test_there_are_enough_of_them():
    assert sum(len(faults) for _, _, faults in cases()) >= 80


# what is too large to be written down: (what makes it, whether a schema can tell, the fault or None)
LARGE = {
    "code": ({"code": "x" * 1048576}, True, None),
    "code-more": ({"code": "x" * 1048577}, True, "/code: found 1048577 bytes, expected at most 1048576"),
    "code-bytes": ({"code": "é" * 600000}, False, "/code: found 1200000 bytes, expected at most 1048576"),
    "inputs": ({"code": "x", "inputs": ["a"] * 4096}, True, None),
    "inputs-more": ({"code": "x", "inputs": ["a"] * 4097}, True, "/inputs: found 4097 lines, expected at most 4096"),
    "inputs-size": ({"code": "x", "inputs": ["a" * 4194304]}, False,
                    "/inputs: found 4194305 bytes of lines, expected at most 4194304"),
    "args": ({"code": "x", "args": ["a"] * 1024}, True, None),
    "args-more": ({"code": "x", "args": ["a"] * 1025}, True, "/args: found 1025 arguments, expected at most 1024"),
    "args-size": ({"code": "x", "args": ["a" * 16384]}, False,
                  "/args: found 16385 bytes of arguments, expected at most 16384"),
    "env-more": ({"code": "x", "env": {f"A{i}": "" for i in range(257)}}, True,
                 "/env: found 257 variables, expected at most 256"),
    "env-size": ({"code": "x", "env": {"A": "b" * 12286}}, False,
                 "/env: found 12289 bytes of variables, expected at most 12288"),
    "labels": ({"code": "x", "labels": {f"a{i}": "v" * 256 for i in range(32)}}, True, None),
    "labels-more": ({"code": "x", "labels": {f"a{i}": "" for i in range(33)}}, True,
                    "/labels: found 33 labels, expected at most 32"),
    "label-long": ({"code": "x", "labels": {"a": "v" * 257}}, True, "/labels/a: found 257 bytes, expected at most 256"),
    "packages-more": ({"code": "x", "packages": ["a"] * 65}, True, "/packages: found 65 packages, expected at most 64"),
    "capture-more": ({"code": "x", "capture": ["a"] * 65}, True, "/capture: found 65 patterns, expected at most 64"),
    "steps": ({"steps": [{"code": "x"}] * 16}, True, None),
    "steps-more": ({"steps": [{"code": "x"}] * 17}, True, "/steps: found 17 steps, expected 1 to 16"),
    "files": ({"code": "x", "files": {f"d/{i}": "" for i in range(1000)}}, True, None),
    "files-more": ({"code": "x", "files": {f"{i}": "" for i in range(1001)}}, True,
                   "/files: found 1001 files, expected at most 1000"),
    "files-size": ({"code": "x", "files": {"a": "a" * 40_000_000, "b": "b" * 30_000_000}}, False,
                   "/files: found 70000000 bytes of files, expected at most 67108864"),
    "files-depth": ({"code": "x", "files": {"/".join("a" * 32): ""}}, True, None),
    "whole": ({"code": "x", "files": {"a": "a" * 101_000_000}}, False,
              "found 101000033 bytes, expected at most 100663296"),
    "values": ({"code": "x", "inputs": ["a"] * 40000}, True, "found about 40003 values, expected at most 32768"),
}


@pytest.mark.parametrize("name", LARGE)
def test_large(name):
    request, in_schema, fault = LARGE[name]
    assert check(json.dumps(request, ensure_ascii=False)) == ([fault] if fault else [])
    if in_schema:
        assert VALIDATOR.is_valid(request) == (fault is None)


def test_a_deep_path_and_a_long_package_are_refused():
    deep = {"code": "x", "files": {"/".join("a" * 33): ""}, "packages": ["a" * 215]}
    assert [line.split(": ")[0] for line in check(json.dumps(deep))] == ["/files/" + "~1".join("a" * 33), "/packages/0"]
    assert len(list(VALIDATOR.iter_errors(deep))) == 2


def test_a_hundred_faults_are_cut_and_counted():
    lines = check(json.dumps({"code": "x", "inputs": [1] * 100}))
    assert lines[:2] == ["/inputs/0: found 1, expected text", "/inputs/1: found 1, expected text"]
    assert lines[64:] == ["and 36 more faults"]


def test_depth():
    [line] = check('{"code": ' + "[" * 100 + "]" * 100 + "}")
    assert line == "Invalid JSON at line 1, column 73: nested deeper than 64 levels"


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_field_is_described():
    """docs/requests.md has a row for each member of the schema."""
    page = (ROOT / "docs/requests.md").read_text()
    step = SCHEMA["$defs"]["step"]["properties"]
    for name in [*SCHEMA["properties"], *SCHEMA["$defs"]["limits"]["properties"], *step]:
        assert f"| `{name}` |" in page, name
