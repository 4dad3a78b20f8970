/* Python: its grammar's names, what its library does, imports and attributes. */
#include <string.h>

#include "policy/eval.h"
#include "policy/grammars.h"
#include "policy/python.h"
#include "policy/spelling.h"
#include "policy/texts.h"
#include "policy/use.h"

static const struct nc_kind_name kinds[] = {
	{"comment", NC_KIND_COMMENT},
	{"identifier", NC_KIND_IDENTIFIER},
	{"string", NC_KIND_STRING},
	{"string_start", NC_KIND_DULL},
	{"string_end", NC_KIND_DULL},
	{"string_content", NC_KIND_STRING_PART},
	{"interpolation", NC_KIND_HOLE},
	{"concatenated_string", NC_KIND_JUXTAPOSED},
	{"integer", NC_KIND_NUMBER},
	{"true", NC_KIND_TRUE},
	{"false", NC_KIND_FALSE},
	{"call", NC_KIND_CALL},
	{"argument_list", NC_KIND_ARGUMENTS},
	{"keyword_argument", NC_KIND_KEYWORD_ARGUMENT},
	{"attribute", NC_KIND_MEMBER},
	{"subscript", NC_KIND_SUBSCRIPT},
	{"slice", NC_KIND_SLICE},
	{"binary_operator", NC_KIND_BINARY},
	{"unary_operator", NC_KIND_UNARY},
	{"parenthesized_expression", NC_KIND_WRAPPER},
	{"await", NC_KIND_WRAPPER},
	{"conditional_expression", NC_KIND_CHOICE},
	{"boolean_operator", NC_KIND_CHOICE},
	{"list", NC_KIND_LIST},
	{"tuple", NC_KIND_LIST},
	{"set", NC_KIND_LIST},
	{"expression_list", NC_KIND_LIST},
	{"pattern_list", NC_KIND_LIST},
	{"tuple_pattern", NC_KIND_LIST},
	{"list_pattern", NC_KIND_LIST},
	{"dictionary", NC_KIND_DICT},
	{"pair", NC_KIND_PAIR},
	{"list_comprehension", NC_KIND_COMPREHENSION},
	{"set_comprehension", NC_KIND_COMPREHENSION},
	{"generator_expression", NC_KIND_COMPREHENSION},
	{"for_in_clause", NC_KIND_FOR_CLAUSE},
	{"lambda", NC_KIND_LAMBDA},
	{"assignment", NC_KIND_ASSIGN},
	{"augmented_assignment", NC_KIND_ASSIGN},
	{"named_expression", NC_KIND_ASSIGN},
	{"import_statement", NC_KIND_IMPORT},
	{"import_from_statement", NC_KIND_IMPORT_FROM},
	{"aliased_import", NC_KIND_IMPORT_AS},
	{"wildcard_import", NC_KIND_IMPORT_ALL},
	{"function_definition", NC_KIND_FUNCTION},
	{"class_definition", NC_KIND_CLASS},
	{"parameters", NC_KIND_PARAMETERS},
	{"lambda_parameters", NC_KIND_PARAMETERS},
	{"default_parameter", NC_KIND_TYPED},
	{"typed_parameter", NC_KIND_TYPED},
	{"typed_default_parameter", NC_KIND_TYPED},
	{"if_statement", NC_KIND_BRANCH},
	{"try_statement", NC_KIND_BRANCH},
	{"match_statement", NC_KIND_BRANCH},
	{"while_statement", NC_KIND_LOOP},
	{"for_statement", NC_KIND_LOOP},
	{"return_statement", NC_KIND_RETURN},
	{"decorator", NC_KIND_RETURN}, /* what stands there is called */
	{"expression_statement", NC_KIND_STATEMENT},
	{"as_pattern", NC_KIND_WITH_ITEM},
	{0},
};

static const struct nc_name_rule names[] = {
	{"__import__", NC_USE_IMPORT, NC_RULE_NONE, 0},
	{"_pickle.loads", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"_posixsubprocess.fork_exec", NC_USE_COMMAND, NC_RULE_NATIVE, 1},
	{"_thread.start_new_thread", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"aiohttp.ClientSession", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"aiohttp.ClientSession().*", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"asyncio.create_subprocess_exec", NC_USE_WORDS, NC_RULE_NONE, 0},
	{"asyncio.create_subprocess_shell", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"asyncio.create_task", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"asyncio.open_connection", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"asyncio.start_server", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"base64.a85decode()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"base64.b64decode()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"base64.b64decode().*", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"base64.b85decode()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"base64.b85decode().*", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"binascii.unhexlify()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"browser_cookie3.*", NC_USE_NOTHING, NC_RULE_CREDENTIALS, 0},
	{"bytes.fromhex()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"bytes.fromhex().*", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"bz2.decompress", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"bz2.decompress()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"bz2.decompress().*", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"cPickle.loads", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"cProfile.run", NC_USE_CODE, NC_RULE_NONE, 0},
	{"cProfile.runctx", NC_USE_CODE, NC_RULE_NONE, 0},
	{"cffi.FFI", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"cloudpickle.loads", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"code.InteractiveInterpreter", NC_USE_NOTHING, NC_RULE_EVAL, 0},
	{"code.interact", NC_USE_NOTHING, NC_RULE_EVAL, 0},
	{"codecs.decode()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"codecs.open", NC_USE_OPEN, NC_RULE_NONE, 0},
	{"commands.getoutput", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"compile", NC_USE_NOTHING, NC_RULE_COMPILE, 0},
	{"concurrent.futures.ProcessPoolExecutor", NC_USE_NOTHING, NC_RULE_FORK, 0},
	{"concurrent.futures.ThreadPoolExecutor", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"cryptography.fernet.Fernet().decrypt()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"cryptography.fernet.Fernet().decrypt().*", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"ctypes.CDLL", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"ctypes.CDLL().execve", NC_USE_COMMAND, NC_RULE_NATIVE, 0},
	{"ctypes.CDLL().mprotect", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"ctypes.CDLL().ptrace", NC_USE_NOTHING, NC_RULE_TRACE, 0},
	{"ctypes.CDLL().syscall", NC_USE_NOTHING, NC_RULE_SYSCALL, 0},
	{"ctypes.CDLL().system", NC_USE_SHELL, NC_RULE_NATIVE, 0},
	{"ctypes.CFUNCTYPE", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"ctypes.PyDLL", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"ctypes.cast", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"ctypes.cdll.*", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"ctypes.memmove", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"ctypes.pythonapi.*", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"ctypes.string_at", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"ctypes.util.find_library", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"dill.load", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"dill.loads", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"dns.resolver.resolve", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"eval", NC_USE_CODE, NC_RULE_NONE, 0},
	{"exec", NC_USE_CODE, NC_RULE_NONE, 0},
	{"execfile", NC_USE_READ, NC_RULE_EVAL, 0},
	{"fabric.Connection", NC_USE_CONNECT, NC_RULE_REMOTE_ACCESS, 0},
	{"flask.Flask().run", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"ftplib.FTP", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"gc.get_objects", NC_USE_NOTHING, NC_RULE_INTROSPECT, 0},
	{"gc.get_referrers", NC_USE_NOTHING, NC_RULE_INTROSPECT, 0},
	{"glob.glob", NC_USE_READ, NC_RULE_NONE, 0},
	{"gzip.decompress", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"gzip.decompress()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"gzip.decompress().*", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"gzip.open", NC_USE_OPEN, NC_RULE_NONE, 0},
	{"http.client.HTTPConnection", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"http.client.HTTPSConnection", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"http.server.HTTPServer", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"http.server.ThreadingHTTPServer", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"httpx.*", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"httpx.AsyncClient", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"httpx.Client", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"imp.load_source", NC_USE_READ, NC_RULE_DYNAMIC_IMPORT, 1},
	{"importlib.__import__", NC_USE_IMPORT, NC_RULE_NONE, 0},
	{"importlib.import_module", NC_USE_IMPORT, NC_RULE_NONE, 0},
	{"importlib.machinery.SourceFileLoader", NC_USE_READ, NC_RULE_DYNAMIC_IMPORT, 1},
	{"importlib.reload", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"importlib.util.spec_from_file_location", NC_USE_READ, NC_RULE_DYNAMIC_IMPORT, 1},
	{"inspect.currentframe", NC_USE_NOTHING, NC_RULE_BUILTINS, 0},
	{"io.FileIO", NC_USE_OPEN, NC_RULE_NONE, 0},
	{"io.open", NC_USE_OPEN, NC_RULE_NONE, 0},
	{"joblib.load", NC_USE_READ, NC_RULE_DESERIALISE, 0},
	{"jsonpickle.decode", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"keyring.get_password", NC_USE_NOTHING, NC_RULE_CREDENTIALS, 0},
	{"lzma.decompress", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"lzma.decompress()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"lzma.decompress().*", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"marshal.load", NC_USE_DECODE, NC_RULE_DESERIALISE, 0},
	{"marshal.loads", NC_USE_DECODE, NC_RULE_DESERIALISE, 0},
	{"marshal.loads()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"multiprocessing.Pool", NC_USE_NOTHING, NC_RULE_FORK, 0},
	{"multiprocessing.Process", NC_USE_FORK, NC_RULE_NONE, 0},
	{"multiprocessing.dummy.Pool", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"multiprocessing.pool.ThreadPool", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"open", NC_USE_OPEN, NC_RULE_NONE, 0},
	{"os.chmod", NC_USE_MODE, NC_RULE_NONE, 0},
	{"os.chown", NC_USE_NOTHING, NC_RULE_PERMISSIONS, 0},
	{"os.chroot", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"os.environ.copy", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"os.execl", NC_USE_WORDS, NC_RULE_NONE, 1},
	{"os.execle", NC_USE_WORDS, NC_RULE_NONE, 1},
	{"os.execlp", NC_USE_WORDS, NC_RULE_NONE, 1},
	{"os.execlpe", NC_USE_WORDS, NC_RULE_NONE, 1},
	{"os.execv", NC_USE_COMMAND, NC_RULE_NONE, 1},
	{"os.execve", NC_USE_COMMAND, NC_RULE_NONE, 1},
	{"os.execvp", NC_USE_COMMAND, NC_RULE_NONE, 1},
	{"os.execvpe", NC_USE_COMMAND, NC_RULE_NONE, 1},
	{"os.fchmod", NC_USE_NOTHING, NC_RULE_PERMISSIONS, 0},
	{"os.fdopen", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"os.fork", NC_USE_FORK, NC_RULE_NONE, 0},
	{"os.forkpty", NC_USE_FORK, NC_RULE_NONE, 0},
	{"os.kill", NC_USE_NOTHING, NC_RULE_KILL, 0},
	{"os.killpg", NC_USE_NOTHING, NC_RULE_KILL, 0},
	{"os.link", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"os.listdir", NC_USE_READ, NC_RULE_NONE, 0},
	{"os.makedirs", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"os.mkdir", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"os.mknod", NC_USE_NOTHING, NC_RULE_DEVICE, 0},
	{"os.open", NC_USE_READ, NC_RULE_NONE, 0},
	{"os.popen", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"os.popen2", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"os.popen3", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"os.posix_spawn", NC_USE_COMMAND, NC_RULE_NONE, 1},
	{"os.posix_spawnp", NC_USE_COMMAND, NC_RULE_NONE, 1},
	{"os.remove", NC_USE_DELETE, NC_RULE_NONE, 0},
	{"os.removedirs", NC_USE_DELETE, NC_RULE_DELETE, 0},
	{"os.rename", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"os.replace", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"os.rmdir", NC_USE_DELETE, NC_RULE_NONE, 0},
	{"os.scandir", NC_USE_READ, NC_RULE_NONE, 0},
	{"os.seteuid", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"os.setgid", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"os.setgroups", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"os.setns", NC_USE_NOTHING, NC_RULE_ESCAPE, 0},
	{"os.setresuid", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"os.setuid", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"os.spawnl", NC_USE_WORDS, NC_RULE_NONE, 2},
	{"os.spawnlp", NC_USE_WORDS, NC_RULE_NONE, 2},
	{"os.spawnv", NC_USE_COMMAND, NC_RULE_NONE, 2},
	{"os.spawnvp", NC_USE_COMMAND, NC_RULE_NONE, 2},
	{"os.startfile", NC_USE_READ, NC_RULE_RUN, 0},
	{"os.stat", NC_USE_READ, NC_RULE_NONE, 0},
	{"os.symlink", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"os.system", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"os.truncate", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"os.unlink", NC_USE_DELETE, NC_RULE_NONE, 0},
	{"os.unshare", NC_USE_NOTHING, NC_RULE_PRIVILEGE, 0},
	{"os.walk", NC_USE_READ, NC_RULE_NONE, 0},
	{"pandas.read_csv", NC_USE_READ, NC_RULE_NONE, 0},
	{"paramiko.SSHClient", NC_USE_NOTHING, NC_RULE_REMOTE_ACCESS, 0},
	{"paramiko.SSHClient().connect", NC_USE_CONNECT, NC_RULE_REMOTE_ACCESS, 0},
	{"pdb.run", NC_USE_CODE, NC_RULE_NONE, 0},
	{"pdb.runeval", NC_USE_CODE, NC_RULE_NONE, 0},
	{"pickle.Unpickler", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"pickle.load", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"pickle.loads", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"pip._internal.main", NC_USE_NOTHING, NC_RULE_PACKAGES, 0},
	{"pip.main", NC_USE_NOTHING, NC_RULE_PACKAGES, 0},
	{"platform.popen", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"posix.system", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"profile.run", NC_USE_CODE, NC_RULE_NONE, 0},
	{"profile.runctx", NC_USE_CODE, NC_RULE_NONE, 0},
	{"pty.spawn", NC_USE_COMMAND, NC_RULE_RUN, 0},
	{"pwd.getpwall", NC_USE_NOTHING, NC_RULE_ACCOUNTS, 0},
	{"pwd.getpwnam", NC_USE_NOTHING, NC_RULE_ACCOUNTS, 0},
	{"pynput.*", NC_USE_NOTHING, NC_RULE_CREDENTIALS, 0},
	{"requests.*", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"requests.Session", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"requests.Session().*", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"requests.exceptions.*", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"requests.request", NC_USE_CONNECT, NC_RULE_NETWORK, 1},
	{"runpy.run_module", NC_USE_IMPORT, NC_RULE_NONE, 0},
	{"runpy.run_path", NC_USE_READ, NC_RULE_EVAL, 0},
	{"scapy.all.*", NC_USE_NOTHING, NC_RULE_RAW_SOCKET, 0},
	{"shelve.open", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"shutil.copy", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"shutil.copy2", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"shutil.copyfile", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"shutil.move", NC_USE_WRITE, NC_RULE_NONE, 1},
	{"shutil.rmtree", NC_USE_DELETE, NC_RULE_DELETE, 0},
	{"smtplib.SMTP", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"smtplib.SMTP_SSL", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"socket.create_connection", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"socket.create_server", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"socket.getaddrinfo", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"socket.gethostbyname", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"socket.gethostname", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"socket.socket", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"socket.socket().*", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"socket.socket().bind", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"socket.socket().connect", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"socket.socket().connect_ex", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"socket.socket().listen", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"socket.socket().sendto", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"socketserver.TCPServer", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"spwd.*", NC_USE_NOTHING, NC_RULE_CREDENTIALS, 0},
	{"sqlite3.connect", NC_USE_WRITE, NC_RULE_NONE, 0},
	{"subprocess.Popen", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"subprocess.call", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"subprocess.check_call", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"subprocess.check_output", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"subprocess.getoutput", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"subprocess.getstatusoutput", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"subprocess.run", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"sys._getframe", NC_USE_NOTHING, NC_RULE_BUILTINS, 0},
	{"sys.settrace", NC_USE_NOTHING, NC_RULE_BUILTINS, 0},
	{"tarfile.open", NC_USE_OPEN, NC_RULE_NONE, 0},
	{"telnetlib.Telnet", NC_USE_CONNECT, NC_RULE_REMOTE_ACCESS, 0},
	{"threading.Thread", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"threading.Timer", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"timeit.timeit", NC_USE_CODE, NC_RULE_NONE, 0},
	{"types.CodeType", NC_USE_NOTHING, NC_RULE_INTROSPECT, 0},
	{"types.FunctionType", NC_USE_NOTHING, NC_RULE_BUILTINS, 0},
	{"urllib.request.*", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"urllib.request.Request", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"urllib.request.urlopen", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"urllib.request.urlretrieve", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"urllib2.urlopen", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"urllib3.PoolManager", NC_USE_NOTHING, NC_RULE_NETWORK, 0},
	{"urllib3.PoolManager().request", NC_USE_CONNECT, NC_RULE_NETWORK, 1},
	{"uvicorn.run", NC_USE_LISTEN, NC_RULE_LISTEN, 0},
	{"webbrowser.get", NC_USE_SHELL, NC_RULE_NONE, 0},
	{"websockets.connect", NC_USE_CONNECT, NC_RULE_NETWORK, 0},
	{"winreg.*", NC_USE_NOTHING, NC_RULE_PERSIST, 0},
	{"yaml.full_load", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"yaml.load", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"yaml.unsafe_load", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"zipfile.ZipFile", NC_USE_OPEN, NC_RULE_NONE, 0},
	{"zlib.decompress", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"zlib.decompress()", NC_USE_DECODE, NC_RULE_NONE, 0},
	{"zlib.decompress().*", NC_USE_DECODE, NC_RULE_NONE, 0},
};

static const struct nc_name_rule imports[] = {
	{"_ctypes", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"_posixsubprocess", NC_USE_COMMAND, NC_RULE_NATIVE, 0},
	{"_thread", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"aiohttp", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"browser_cookie3", NC_USE_NOTHING, NC_RULE_CREDENTIALS, 0},
	{"builtins", NC_USE_NOTHING, NC_RULE_BUILTINS, 0},
	{"cffi", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"concurrent.futures", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"ctypes", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"ctypes.*", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"fabric", NC_USE_CONNECT, NC_RULE_REMOTE_ACCESS, 0},
	{"ftplib", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"http.client", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"httpx", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"importlib", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"keyboard", NC_USE_NOTHING, NC_RULE_CREDENTIALS, 0},
	{"marshal", NC_USE_NOTHING, NC_RULE_DESERIALISE, 0},
	{"multiprocessing", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"multiprocessing.*", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"nt", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"os", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"paramiko", NC_USE_CONNECT, NC_RULE_REMOTE_ACCESS, 0},
	{"posix", NC_USE_NOTHING, NC_RULE_NATIVE, 0},
	{"pty", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"pynput", NC_USE_NOTHING, NC_RULE_CREDENTIALS, 0},
	{"pynput.*", NC_USE_NOTHING, NC_RULE_CREDENTIALS, 0},
	{"requests", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"scapy", NC_USE_CONNECT, NC_RULE_RAW_SOCKET, 0},
	{"scapy.*", NC_USE_CONNECT, NC_RULE_RAW_SOCKET, 0},
	{"smtplib", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"socket", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"spwd", NC_USE_NOTHING, NC_RULE_CREDENTIALS, 0},
	{"subprocess", NC_USE_COMMAND, NC_RULE_NONE, 0},
	{"sys", NC_USE_NOTHING, NC_RULE_NONE, 0},
	{"telnetlib", NC_USE_CONNECT, NC_RULE_REMOTE_ACCESS, 0},
	{"threading", NC_USE_THREAD, NC_RULE_NONE, 0},
	{"urllib.request", NC_USE_CONNECT, NC_RULE_NONE, 0},
	{"urllib3", NC_USE_CONNECT, NC_RULE_NONE, 0},
};

/* Attributes that lead from any object to the interpreter's own. */
static const struct {
	const char *name;
	enum nc_rule_id rule;
} inner_names[] = {
	{"__subclasses__", NC_RULE_INTROSPECT},
	{"__globals__", NC_RULE_INTROSPECT},
	{"__builtins__", NC_RULE_INTROSPECT},
	{"func_globals", NC_RULE_INTROSPECT},
	{"f_globals", NC_RULE_INTROSPECT},
	{"f_builtins", NC_RULE_INTROSPECT},
	{"gi_frame", NC_RULE_INTROSPECT},
	{"cr_frame", NC_RULE_INTROSPECT},
	{"tb_frame", NC_RULE_BUILTINS},
	{"f_back", NC_RULE_BUILTINS},
	{"ag_frame", NC_RULE_INTROSPECT},
	{"f_locals", NC_RULE_BUILTINS},
	{"__base__", NC_RULE_BUILTINS},
	{"__bases__", NC_RULE_BUILTINS},
	{"__self__", NC_RULE_BUILTINS},
	{"__mro__", NC_RULE_BUILTINS},
	{"__code__", NC_RULE_BUILTINS},
	{"co_code", NC_RULE_BUILTINS},
	{"__closure__", NC_RULE_BUILTINS},
	{"__loader__", NC_RULE_BUILTINS},
};

/* What a frame's or module's tables of names hold is what stands there by itself. */
static const char *const transparent[] = {"builtins.", "__builtins__.", "__builtin__.",
	"globals().", "locals().", "vars().", "__main__.", "sys.modules.", "__import__().", NULL};

/* Modules that others import, and that can be had from these: platform.os is os. */
static const char *const inner_modules[] = {
	"builtins", "ctypes", "importlib", "os", "shutil", "socket", "subprocess", "sys", NULL};

void nc_python_attribute(struct nc_scan *scan, uint32_t node, const char *text, size_t size)
{
	for (size_t i = 0; i < sizeof(inner_names) / sizeof(inner_names[0]); i++)
		if (strlen(inner_names[i].name) == size &&
			memcmp(inner_names[i].name, text, size) == 0)
			nc_scan_find(scan, inner_names[i].rule, node, text, size);
}

/*
 * What a format string takes of its arguments: "{0.__globals__[x]}". All of them are looked at,
 * used or not: str.format, format_map, string.Formatter, logging and others would take it.
 */
static void judge_fields(struct nc_scan *scan, uint32_t node, const struct nc_datum *text)
{
	const char *at = text->text, *end = text->text + text->size;

	while ((at = memchr(at, '{', (size_t)(end - at)))) {
		const char *name = NULL;

		for (at++; at <= end; at++) {
			bool ends = at == end || memchr(".[]:!{}", *at, 7);

			if (name && ends)
				nc_python_attribute(scan, node, name, (size_t)(at - name));
			if (ends)
				name = at < end && (*at == '.' || *at == '[') ? at + 1 : NULL;
			if (at == end || (ends && memchr(":!{}", *at, 4)))
				break;
		}
		if (at >= end)
			break;
	}
}

/* A text that is known as a whole, wherever it goes: vars(x)["__globals__"], attrgetter(). */
static void judge_text(struct nc_scan *scan, uint32_t node)
{
	const struct nc_node *at = nc_scan_node(scan, node);
	const struct nc_datum *text = nc_datum(&scan->data, at->datum);

	if (text->kind != NC_DATUM_TEXT || text->size == 0 || scan->learning || scan->unrolling ||
		at->role == NC_ROLE_KEY || /* {"__builtins__": {}} for eval() takes nothing */
		scan->tree.nodes[at->parent].kind == NC_KIND_STATEMENT ||
		(at->kind == NC_KIND_BINARY && scan->tree.nodes[at->parent].kind == at->kind))
		return;
	for (const char *part = text->text, *end = part + text->size; part < end;) {
		const char *dot = memchr(part, '.', (size_t)(end - part));

		nc_python_attribute(scan, node, part, (size_t)((dot ? dot : end) - part));
		part = dot ? dot + 1 : end;
	}
	judge_fields(scan, node, text);
}

/* A format that nobody can know takes what it wants of functions, classes and modules. */
static void judge_format(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t function = nc_tree_child(tree, node, NC_ROLE_FUNCTION);
	uint32_t arguments = nc_tree_child(tree, node, NC_ROLE_ARGUMENTS);
	uint32_t name = function ? nc_tree_child(tree, function, NC_ROLE_ATTRIBUTE) : 0;
	uint32_t object = function ? nc_tree_child(tree, function, NC_ROLE_OBJECT) : 0;

	if (!name || !object || !arguments || nc_datum_is_plain(nc_scan_datum(scan, object)) ||
		!(nc_tree_is(tree, name, "format") || nc_tree_is(tree, name, "format_map") ||
			nc_tree_is(tree, name, "vformat")))
		return;
	for (uint32_t child = nc_tree_first(tree, arguments); child;
		child = nc_tree_next(tree, child)) {
		const struct nc_datum *value = nc_scan_datum(scan, child);

		if (value->kind == NC_DATUM_OWN ||
			(value->kind == NC_DATUM_NAME && !memchr(value->text, '.', value->size) &&
				value->text[value->size - 1] != ')'))
			nc_scan_find_datum(scan, NC_RULE_REFLECT, node, value);
	}
}

/* import a.b binds a; import a.b as c binds c. */
static void import_plain(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;

	for (uint32_t child = nc_tree_first(tree, node); child; child = nc_tree_next(tree, child)) {
		uint32_t name = child, alias = 0, size;
		const char *text, *dot;

		if (tree->nodes[child].role != NC_ROLE_NAME)
			continue;
		if (tree->nodes[child].kind == NC_KIND_IMPORT_AS) {
			name = nc_tree_child(tree, child, NC_ROLE_NAME);
			alias = nc_tree_child(tree, child, NC_ROLE_ALIAS);
		}
		if (!name)
			continue;
		text = nc_tree_text(tree, name, &size);
		nc_scan_import(scan, child, text, size, false);
		if (alias) {
			uint32_t alias_size;
			const char *alias_text = nc_tree_text(tree, alias, &alias_size);

			nc_scan_bind(scan, alias_text, alias_size,
				nc_datum_name(&scan->data, text, size));
			continue;
		}
		dot = memchr(text, '.', size);
		size = dot ? (uint32_t)(dot - text) : size;
		nc_scan_bind(scan, text, size, nc_datum_name(&scan->data, text, size));
	}
}

/* from os import *: every function that we have a rule for is there under its own name. */
static void import_all(struct nc_scan *scan, const char *module, size_t size)
{
	for (size_t i = 0; i < scan->analyser->n_names; i++) {
		const char *name = scan->analyser->names[i].name;
		const char *own = strlen(name) > size + 1 ? name + size + 1 : NULL;

		if (own && memcmp(name, module, size) == 0 && name[size] == '.' &&
			!strpbrk(own, ".*("))
			nc_scan_bind(scan, own, strlen(own),
				nc_datum_name(&scan->data, name, strlen(name)));
	}
}

static void import_from(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t module = nc_tree_child(tree, node, NC_ROLE_MODULE), size;
	const char *text;
	uint32_t from;

	if (!module)
		return;
	text = nc_tree_text(tree, module, &size);
	nc_scan_import(scan, module, text, size, false);
	from = nc_datum_name(&scan->data, text, size);
	for (uint32_t child = nc_tree_first(tree, node); child; child = nc_tree_next(tree, child)) {
		uint32_t name = child, alias = 0, name_size, alias_size;
		const char *name_text, *alias_text;

		if (tree->nodes[child].kind == NC_KIND_IMPORT_ALL)
			import_all(scan, text, size);
		if (tree->nodes[child].role != NC_ROLE_NAME)
			continue;
		if (tree->nodes[child].kind == NC_KIND_IMPORT_AS) {
			name = nc_tree_child(tree, child, NC_ROLE_NAME);
			alias = nc_tree_child(tree, child, NC_ROLE_ALIAS);
		}
		if (!name)
			continue;
		name_text = nc_tree_text(tree, name, &name_size);
		alias_text = nc_tree_text(tree, alias ? alias : name, &alias_size);
		nc_scan_bind(scan, alias_text, alias_size,
			nc_eval_member(scan, from, name_text, name_size));
	}
}

static uint32_t subscript(struct nc_scan *scan, uint32_t node)
{
	uint32_t object = nc_tree_child(&scan->tree, node, NC_ROLE_VALUE);
	uint32_t index = nc_tree_child(&scan->tree, node, NC_ROLE_INDEX);

	if (object && index && nc_scan_node(scan, index)->kind == NC_KIND_SLICE)
		return nc_python_slice(scan, object, index);
	return 0;
}

/* with X as y, except X as y. */
static void with_item(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t value = nc_tree_first(tree, node);
	uint32_t alias = nc_tree_child(tree, node, NC_ROLE_ALIAS), size;
	const char *text;

	if (!value || !alias)
		return;
	text = nc_tree_text(tree, alias, &size);
	nc_scan_bind(scan, text, size, tree->nodes[value].datum);
}

/* r"\x" is what it looks like. */
static bool is_raw(const struct nc_scan *scan, uint32_t node)
{
	const struct nc_node *string = &scan->tree.nodes[scan->tree.nodes[node].parent];
	const char *text = scan->tree.text + string->start;
	uint32_t size = string->end - string->start;

	for (uint32_t i = 0; i < size && i < 3 && text[i] != '"' && text[i] != '\''; i++)
		if (text[i] == 'r' || text[i] == 'R')
			return true;
	return false;
}

static uint32_t operation(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t left = nc_tree_child(tree, node, NC_ROLE_LEFT);
	uint32_t right = nc_tree_child(tree, node, NC_ROLE_RIGHT);
	uint32_t sign = nc_tree_child(tree, node, NC_ROLE_OPERATOR);

	if (!left || !right || !sign || nc_scan_datum(scan, left)->kind != NC_DATUM_TEXT)
		return 0;
	if (nc_tree_is(tree, sign, "%"))
		return nc_texts_percent(scan, nc_scan_datum(scan, left), tree->nodes[right].datum);
	if (nc_tree_is(tree, sign, "/"))
		return nc_datum_concat(&scan->data,
			nc_datum_concat(&scan->data, tree->nodes[left].datum,
				nc_datum_text(&scan->data, "/", 1)),
			tree->nodes[right].datum);
	return 0;
}

static void leave_member(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t object = nc_tree_child(tree, node, NC_ROLE_OBJECT);
	uint32_t name = nc_tree_child(tree, node, NC_ROLE_ATTRIBUTE), size;
	const char *text;

	if (!name || !object)
		return;
	text = nc_tree_text(tree, name, &size);
	nc_python_attribute(scan, node, text, size);
	/* a module's __dict__ holds its members */
	if (nc_tree_is(tree, name, "__dict__"))
		tree->nodes[node].datum = tree->nodes[object].datum;
}

/* A function that becomes a member of a class is called as one, which is not followed. */
static void leave_assignment(struct nc_scan *scan, uint32_t node)
{
	const struct nc_tree *tree = &scan->tree;
	uint32_t right = nc_tree_child(tree, node, NC_ROLE_RIGHT), around = node;

	/* the statement, the body, the class */
	for (int i = 0; i < 3 && tree->nodes[around].kind != NC_KIND_CLASS; i++) {
		around = tree->nodes[around].parent;
		if (tree->nodes[around].kind == NC_KIND_FUNCTION)
			return;
	}
	if (right && tree->nodes[around].kind == NC_KIND_CLASS &&
		nc_scan_datum(scan, right)->kind == NC_DATUM_NAME)
		nc_use_judge(scan, right, NULL, tree->nodes[right].datum);
}

static void leave(struct nc_scan *scan, uint32_t node)
{
	struct nc_node *at = nc_scan_node(scan, node);
	uint32_t size, folded = 0;
	const char *text;

	nc_eval_leave(scan, node);
	switch (at->kind) {
	case NC_KIND_STRING_PART:
		if (is_raw(scan, node)) {
			text = nc_tree_text(&scan->tree, node, &size);
			at->datum = nc_datum_text(&scan->data, text, size);
		}
		break;
	case NC_KIND_IDENTIFIER:
		if (nc_tree_is(&scan->tree, node, "__builtins__") && at->role != NC_ROLE_ATTRIBUTE)
			nc_scan_find(scan, NC_RULE_BUILTINS, node, "__builtins__", 12);
		else if (at->role != NC_ROLE_ATTRIBUTE) { /* case object(__globals__=x) takes it */
			text = nc_tree_text(&scan->tree, node, &size);
			nc_python_attribute(scan, node, text, size);
		}
		break;
	case NC_KIND_CALL:
		judge_format(scan, node);
		break;
	case NC_KIND_MEMBER:
		leave_member(scan, node);
		break;
	case NC_KIND_ASSIGN:
		leave_assignment(scan, node);
		break;
	case NC_KIND_SUBSCRIPT:
		folded = subscript(scan, node);
		break;
	case NC_KIND_BINARY:
		folded = operation(scan, node);
		break;
	case NC_KIND_COMPREHENSION:
		folded = nc_python_comprehension(scan, node);
		break;
	case NC_KIND_IMPORT:
		import_plain(scan, node);
		break;
	case NC_KIND_IMPORT_FROM:
		import_from(scan, node);
		break;
	case NC_KIND_WITH_ITEM:
		with_item(scan, node);
		break;
	default:
		break;
	}
	if (folded)
		at->datum = folded;
	if (at->kind == NC_KIND_STRING || at->kind == NC_KIND_BINARY || at->kind == NC_KIND_CALL ||
		at->kind == NC_KIND_JUXTAPOSED || folded)
		judge_text(scan, node);
}

const struct nc_analyser nc_python = {
	.name = "python",
	.grammar = tree_sitter_python,
	.kinds = kinds,
	.names = names,
	.n_names = sizeof(names) / sizeof(names[0]),
	.imports = imports,
	.n_imports = sizeof(imports) / sizeof(imports[0]),
	.transparent = transparent,
	.inner_modules = inner_modules,
	.enter = nc_eval_enter,
	.leave = leave,
	.fold_call = nc_python_call,
	.fold_method = nc_python_method,
	.spell = nc_spell_python,
};
