/* Which programs can do their work in one process. */
#include "unit.h"

#include <string.h>

#include "policy/alone.h"

static bool is_alone(enum nc_language language, const char *code)
{
	const struct nc_policy_options options = {.profile = NC_PROFILE_STANDARD};
	cleanup_policy struct nc_policy *policy = NULL;
	cleanup_report struct nc_report *report = NULL;

	assert_int_equal(nc_policy_new(&options, &policy), 0);
	assert_int_equal(nc_policy_analyse(policy, language, code, strlen(code), &report), 0);
	return nc_report_is_alone(report, language);
}

static void honest_work_is_done_alone(void **state)
{
	(void)state;
	assert_true(is_alone(NC_PYTHON, "print(6 * 7)"));
	assert_true(
		is_alone(NC_PYTHON, "import json, os.path\nfrom collections import Counter\n"
				    "print(json.dumps(Counter('abc')), os.path.join('a', 'b'))"));
	assert_true(
		is_alone(NC_PYTHON, "import threading\nthreading.Thread(target=print).start()"));
	assert_true(is_alone(NC_JAVASCRIPT, "const p = require('node:path'); console.log(p.sep)"));
	assert_true(
		is_alone(NC_GO, "package main\nimport \"fmt\"\nfunc main() { fmt.Println(1) }"));
	assert_true(is_alone(NC_RUST, "use std::fmt;\nfn main() { println!(\"1\"); }"));
}

static void what_needs_processes_gets_them(void **state)
{
	static const char *const python[] = {"import subprocess\nsubprocess.run(['ls'])",
		"import os\nos.fork()", "import os\nos.system('ls')", "import multiprocessing",
		"from concurrent.futures import ProcessPoolExecutor", "import platform",
		"import uuid", "import numpy", "import pytest", "import asyncio",
		/* or may need them */
		"exec(input())", "import importlib\nimportlib.import_module(input())",
		"import os\ngetattr(os, input())()", "import ctypes", "import helper",
		"__import__('o' + 's').listdir()", "x = (",
		"import os\nos.posix_spawn('/bin/ls', ['ls'], {})",
		"import os\nf = os.popen\nf('ls')", "import pty\npty.spawn('sh')",
		"from os import *\nsystem('ls')", "import shutil, os\nos.execvp('ls', ['ls'])"};

	(void)state;
	for (size_t i = 0; i < sizeof(python) / sizeof(python[0]); i++)
		if (is_alone(NC_PYTHON, python[i]))
			fail_msg("alone: %s", python[i]);
	assert_false(is_alone(NC_SHELL, "echo a"));
	assert_false(is_alone(NC_C, "int main(void) { return 0; }"));
	assert_false(is_alone(NC_JAVASCRIPT, "require('child_process').exec('ls')"));
	assert_false(is_alone(NC_JAVASCRIPT, "require('cluster').fork()"));
	assert_false(is_alone(NC_JAVASCRIPT, "process.binding('spawn_sync')"));
	assert_false(is_alone(NC_JAVASCRIPT, "module.constructor._load(n).exec('ls')"));
	assert_false(is_alone(NC_JAVASCRIPT, "process.getBuiltinModule(n).exec('ls')"));
	assert_false(is_alone(NC_GO, "package main\nimport \"os\"\nfunc main() { "
				     "os.StartProcess(\"/bin/ls\", nil, nil) }"));
	assert_false(is_alone(NC_JAVASCRIPT, "import x from 'left-pad'"));
	assert_false(is_alone(NC_JAVASCRIPT, "require(process.argv[2])"));
	assert_false(is_alone(NC_GO,
		"package main\nimport \"os/exec\"\nfunc main() { exec.Command(\"ls\").Run() }"));
	assert_false(is_alone(
		NC_GO, "package main\nimport \"plugin\"\nfunc main() { plugin.Open(\"x\") }"));
	assert_false(is_alone(
		NC_RUST, "use std::process::Command;\nfn main() { Command::new(\"ls\"); }"));
	assert_false(is_alone(NC_RUST, "use libc;\nfn main() { unsafe { libc::fork(); } }"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(honest_work_is_done_alone),
		cmocka_unit_test(what_needs_processes_gets_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
