/* Environment variables that are code. */
#include "policy/variables.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "policy/hooks.h"

#define FINDS "This says where programs are found, also the interpreter"
#define LOADER "The dynamic loader and libc load code or data that it names into every program"
#define PLUGINS "Libraries load the machine code that it names"
#define PYTHON "Python reads it before the program: it imports, finds or begins other code"
#define NODE "Node reads it before the program: it takes options, modules or files from it"
#define BASH "bash reads it before the script: options, functions and texts that it runs"
#define PROMPT "Shells expand it, commands in it included, before or after they run a command"
#define SHELLS "Shells read it before the program: files to run, ways to find others"
#define GO "The go command takes programs, flags or directories from it"
#define RUST "rustc and cargo take programs, flags or directories from it"
#define CC "Compilers take programs, flags or directories from it"
#define MAKE "make takes options, rules or programs from it"
#define PERL "Perl reads it before the program: it takes options, modules or a debugger from it"
#define RUBY "Ruby reads it before the program: it takes options or files to run from it"
#define JAVA "Java reads it before the program: it takes options, agents or classes from it"
#define LUA "Lua runs it, or finds modules by it, before the program"
#define PHP "PHP reads its settings, with files to run first, where this says"
#define DOTNET ".NET loads the code that it names before the program"
#define OTHERS "Its interpreter runs files, or finds modules, by it before the program"
#define GIT "git runs, or reads its settings from, what it names"
#define RUNS "Programs run what it names"
#define PACKAGES "Package managers take options from it: programs to run, places to load from"
#define EDITORS "Editors run it, or read what they run from where it says"
#define TESTS "Python's test tools load the modules that it names"
#define MODULES "Libraries of Python import the module that it names, or run what they find there"

/*
 * The first row that fits decides: what is harmless stands before the family that it is of. Whole
 * families are refused where their names are theirs alone, so that the next release's are too.
 */
/* clang-format off */
const struct nc_variable nc_variables[] = {
	{"PATH", FINDS},

	{"LD_*", LOADER}, {"GCONV_PATH", LOADER}, {"GETCONF_DIR", LOADER},
	{"GLIBC_TUNABLES", LOADER}, {"LOCPATH", LOADER}, {"NLSPATH", LOADER},
	{"MALLOC_TRACE", "libc writes a file of this name"},
	{"HOSTALIASES", LOADER}, {"RESOLV_HOST_CONF", LOADER},
	{"OPENSSL_*", PLUGINS},
	{"SSLKEYLOGFILE", "TLS libraries write their keys to a file of this name"},
	{"GIO_MODULE_DIR", PLUGINS}, {"GIO_EXTRA_MODULES", PLUGINS}, {"GTK_MODULES", PLUGINS},
	{"GTK_PATH", PLUGINS}, {"GDK_PIXBUF_*", PLUGINS}, {"GST_*", PLUGINS}, {"QT_*", PLUGINS},
	{"QML*", PLUGINS}, {"KRB5_CONFIG", PLUGINS}, {"SASL_*", PLUGINS}, {"LIBGL_*", PLUGINS},
	{"LIBVA_*", PLUGINS}, {"OCL_ICD_*", PLUGINS}, {"VK_*", PLUGINS}, {"GDAL_*", PLUGINS},
	{"HDF5_*", PLUGINS}, {"OMP_TOOL*", PLUGINS}, {"ODBC*", PLUGINS}, {"LIBMYSQL_*", PLUGINS},
	{"ALSA_*", PLUGINS}, {"NSS_*", PLUGINS}, {"P11_KIT_*", PLUGINS}, {"MAGICK_*", PLUGINS},

	{"PYTHONHASHSEED", NULL}, {"PYTHONUNBUFFERED", NULL}, {"PYTHONUTF8", NULL},
	{"PYTHONDONTWRITEBYTECODE", NULL}, {"PYTHONFAULTHANDLER", NULL},
	{"PYTHONNOUSERSITE", NULL}, {"PYTHONSAFEPATH", NULL}, {"PYTHONINTMAXSTRDIGITS", NULL},
	{"PYTHONASYNCIODEBUG", NULL}, {"PYTHONTRACEMALLOC", NULL}, {"PYTHONMALLOC", NULL},
	{"PYTHON*", PYTHON},
	{"PYTEST_*", TESTS}, {"COVERAGE_PROCESS_START", TESTS}, {"NOSE_*", TESTS},
	{"MPLBACKEND", MODULES}, {"MPLCONFIGDIR", MODULES}, {"MATPLOTLIBRC", MODULES},
	{"NUMBA_*", MODULES}, {"DJANGO_*", MODULES}, {"FLASK_*", MODULES}, {"JUPYTER_*", MODULES},
	{"IPYTHONDIR", PYTHON}, {"__PYVENV_LAUNCHER__", PYTHON},

	{"NODE_ENV", NULL}, {"NODE_NO_WARNINGS", NULL}, {"NODE_DISABLE_COLORS", NULL},
	{"NODE_DEBUG", NULL},
	{"NODE_*", NODE}, {"TS_NODE_*", NODE}, {"ELECTRON_*", NODE}, {"DENO_*", NODE},
	{"BUN_*", NODE},

	{"BASH*", BASH}, {"SHELLOPTS", BASH}, {"POSIXLY_CORRECT", BASH},
	{"PS0", PROMPT}, {"PS1", PROMPT}, {"PS2", PROMPT}, {"PS3", PROMPT}, {"PS4", PROMPT},
	{"PROMPT_COMMAND", PROMPT}, {"MAILPATH", PROMPT},
	{"ENV", SHELLS}, {"CDPATH", SHELLS}, {"FPATH", SHELLS}, {"ZDOTDIR", SHELLS},
	{"FCEDIT", SHELLS}, {"EXECIGNORE", SHELLS}, {"INPUTRC", SHELLS},
	{"SHELL", "Programs that run a shell take this one"},
	{"AWKPATH", OTHERS}, {"AWKLIBPATH", OTHERS},

	{"GOFLAGS", GO}, {"GOENV", GO}, {"GOROOT", GO}, {"GOPATH", GO}, {"GOBIN", GO},
	{"GOTOOLDIR", GO}, {"GOTOOLCHAIN", GO}, {"GOWORK", GO}, {"GOCACHE*", GO},
	{"GOMODCACHE", GO}, {"GOPROXY", GO}, {"GOAUTH", GO}, {"GOVCS", GO}, {"GOSUMDB", GO},
	{"GONOSUM*", GO}, {"GONOPROXY", GO}, {"GOPRIVATE", GO}, {"GOINSECURE", GO},
	{"GO111MODULE", GO}, {"GCCGO*", GO}, {"CGO_*", GO},

	{"RUST_BACKTRACE", NULL}, {"RUST_LOG", NULL}, {"RUST_MIN_STACK", NULL},
	{"RUST*", RUST}, {"CARGO*", RUST},

	{"CC", CC}, {"CXX", CC}, {"CPP", CC}, {"LD", CC}, {"AR", CC}, {"AS", CC}, {"RANLIB", CC},
	{"CFLAGS", CC}, {"CXXFLAGS", CC}, {"CPPFLAGS", CC}, {"LDFLAGS", CC}, {"ASFLAGS", CC},
	{"COMPILER_PATH", CC}, {"LIBRARY_PATH", CC}, {"CPATH", CC}, {"C_INCLUDE_PATH", CC},
	{"CPLUS_INCLUDE_PATH", CC}, {"OBJC_INCLUDE_PATH", CC}, {"GCC_*", CC}, {"COLLECT_*", CC},
	{"DEPENDENCIES_OUTPUT", CC}, {"SUNPRO_DEPENDENCIES", CC}, {"CCC_*", CC}, {"CLANG_*", CC},
	{"CCACHE_*", CC}, {"DISTCC_*", CC}, {"PKG_CONFIG*", CC}, {"LDEMULATION", CC},
	{"MAKEFLAGS", MAKE}, {"MFLAGS", MAKE}, {"GNUMAKEFLAGS", MAKE}, {"MAKEFILES", MAKE},
	{"MAKE", MAKE}, {"MAKESHELL", MAKE}, {"CMAKE_*", MAKE},

	{"PERL*", PERL}, {"RUBY*", RUBY}, {"GEM_*", RUBY}, {"BUNDLE_*", RUBY},
	{"JAVA_*", JAVA}, {"_JAVA_*", JAVA}, {"JDK_JAVA*", JAVA}, {"CLASSPATH", JAVA},
	{"JRE_HOME", JAVA}, {"MAVEN_*", JAVA}, {"GRADLE_*", JAVA}, {"SCALA_*", JAVA},
	{"LUA_*", LUA}, {"PHPRC", PHP}, {"PHP_*", PHP},
	{"DOTNET_*", DOTNET}, {"CORECLR_*", DOTNET}, {"COR_PROFILER*", DOTNET}, {"COMPlus_*", DOTNET},
	{"MONO_*", DOTNET},
	{"R_PROFILE*", OTHERS}, {"R_ENVIRON*", OTHERS}, {"R_HOME", OTHERS}, {"R_LIBS*", OTHERS},
	{"JULIA_*", OTHERS}, {"ERL_*", OTHERS}, {"ERLC_*", OTHERS},
	{"ELIXIR_*", OTHERS}, {"TCLLIBPATH", OTHERS}, {"TCL_LIBRARY", OTHERS},
	{"GUILE_*", OTHERS}, {"OCAMLRUNPARAM", OTHERS}, {"CAML_LD_LIBRARY_PATH", OTHERS},
	{"GHC*", OTHERS}, {"BC_ENV_ARGS", OTHERS}, {"DC_ENV_ARGS", OTHERS}, {"OCTAVE_*", OTHERS}, {"SBCL_HOME", OTHERS},

	{"GIT_AUTHOR_*", NULL}, {"GIT_COMMITTER_*", NULL}, {"GIT_TERMINAL_PROMPT", NULL},
	{"GIT_*", GIT},
	{"EDITOR", RUNS}, {"VISUAL", RUNS}, {"SUDO_EDITOR", RUNS}, {"PAGER", RUNS},
	{"MANPAGER", RUNS}, {"SYSTEMD_PAGER", RUNS}, {"BROWSER", RUNS}, {"LESSOPEN", RUNS},
	{"LESSCLOSE", RUNS}, {"LESSKEY*", RUNS}, {"TAR_OPTIONS", RUNS}, {"RSYNC_RSH", RUNS},
	{"CVS_RSH", RUNS}, {"SVN_SSH", RUNS}, {"SSH_ASKPASS", RUNS}, {"SUDO_ASKPASS", RUNS},
	{"MANROFFOPT", RUNS}, {"GROFF_*", RUNS}, {"GDBHISTFILE", RUNS}, {"TERMINFO*", LOADER},
	{"TERMCAP", LOADER}, {"PARALLEL", RUNS},
	{"ZIPOPT", RUNS}, {"PSQLRC", RUNS}, {"WGETRC", RUNS}, {"SYSTEM_WGETRC", RUNS},
	{"CURL_HOME", RUNS}, {"XDG_CONFIG_*", RUNS}, {"CONFIG_SITE", RUNS}, {"CONFIG_SHELL", RUNS},
	{"AUTOCONF", RUNS}, {"AUTOM4TE", RUNS}, {"AUTOMAKE", RUNS}, {"ACLOCAL*", RUNS},
	{"M4PATH", RUNS}, {"GS_*", RUNS}, {"TEXINPUTS", RUNS}, {"TEXMF*", RUNS},
	{"VIM", EDITORS}, {"VIMINIT", EDITORS}, {"VIMRUNTIME", EDITORS},
	{"EXINIT", EDITORS}, {"GVIMINIT", EDITORS}, {"MYVIMRC", EDITORS},
	{"EMACSLOADPATH", EDITORS}, {"SCREENRC", EDITORS},
	{"npm_config_*", PACKAGES}, /* in any case: npm takes it so */
	{"YARN_*", PACKAGES},
	{"PNPM_*", PACKAGES}, {"COREPACK_*", PACKAGES}, {"PIP_*", PACKAGES},
	{"UV_THREADPOOL_SIZE", NULL}, {"UV_*", PACKAGES},
	{"POETRY_*", PACKAGES}, {"CONDA_*", PACKAGES},
	{"PYENV_*", PACKAGES}, {"NVM_*", PACKAGES},
};
/* clang-format on */

const size_t nc_n_variables = sizeof(nc_variables) / sizeof(nc_variables[0]);

/* One in small letters fits in any case. */
static bool fits(const char *pattern, const char *name)
{
	size_t size = strcspn(pattern, "*");
	int differs =
		*pattern >= 'a' ? strncasecmp(pattern, name, size) : strncmp(pattern, name, size);

	return differs == 0 && (pattern[size] == '*' || name[size] == '\0');
}

const char *nc_variable_refused(const struct nc_terms *terms, const char *name)
{
	if (nc_hooks_mode(terms) != NC_HOOKS_ENFORCE)
		return NULL;
	for (size_t i = 0; i < nc_n_variables; i++)
		if (fits(nc_variables[i].name, name))
			return nc_variables[i].reason;
	return NULL;
}
