# What a zygote says in Python, in names that its programs do not see; built into zygote.c, which calls these functions.
import atexit, gc, os, sys, weakref
from importlib.machinery import SourceFileLoader

handlers = []  # of logs, before the program

# What many programs do: see load and warm.
samples = ['''\
import collections, dataclasses, datetime, json, math, re, sys
def f(n):
    return [str(i) for i in range(n)]
class C:
    def __init__(self):
        self.x = {'a': 1}
@dataclasses.dataclass
class D:
    x: int
    y: str = 'a'
try:
    C().x['b']
except KeyError as e:
    f'{e!r:>4}'.join(f(3))
sorted([D(2), D(1)], key=lambda d: -d.x), str(D(3)), math.sqrt(2)
json.loads(json.dumps([{'a': 1.5}, None, 'text'], indent=1))
re.sub(r'[a-z]+(\\d)', r'\\1', 'a1 b2').split(), collections.Counter('aab').most_common(1)
datetime.datetime(2000, 1, 1).isoformat(), '{:>5.2f}'.format(0.5)
with open('/dev/null') as file:
    file.read()
print(end='')
''', '''\
import io, numpy, pandas
a = numpy.arange(6.0).reshape(2, 3)
(a.T @ a).sum(axis=0).tolist(), a[a > 2].mean(), a.std(), str(a)
f = pandas.DataFrame({'a': range(4), 'b': list('xyxy'), 'c': numpy.linspace(0, 1, 4)})
f['d'] = f.a * 2
f.groupby('b').a.sum()['x'], f.groupby('b').agg({'a': 'mean', 'c': 'max'})
f[f.a > 1].sort_values('c').merge(f, on='b').head(), f.iloc[0], f.loc[1, 'c'], f.c.mean()
f.describe(), f.to_dict('records'), str(f)
pandas.read_csv(io.StringIO(f.to_csv(index=False))).b.value_counts()
''']


# Modules that are not there are no error. What is done here first is done for all children: caches are filled, modules that others load late are there.
def load(names):
    global known, samples, folder, forks, callbacks, handlers
    folder = os.path.dirname(sys.argv[0])
    forks, register = [], os.register_at_fork
    os.register_at_fork = lambda **functions: forks.append(functions)
    for name in names.decode().split(','):
        try:
            __import__(name)
        except Exception:
            pass
    os.register_at_fork = register
    if 'logging' in sys.modules:
        atexit.unregister(sys.modules['logging'].shutdown)
    if 'pandas' not in sys.modules:
        del samples[1]
    samples = [sample for sample in samples if try_out(sample)]
    known = frozenset(sys.modules)
    callbacks, handlers = atexit._ncallbacks(), log_handlers()[:]
    gc.collect()
    gc.freeze()


def log_handlers():
    return getattr(sys.modules.get('logging'), '_handlerList', handlers)


def try_out(sample):
    try:
        exec(sample, {})
        return True
    except Exception:
        return False


# What no two processes may have alike. What modules do about a fork is for forks of the program's: of a zygote with one thread that holds no lock nothing
# else is left to be mended, and to run all of it takes longer than many a program.
def reseed():
    loaded = sys.modules.get
    for functions in forks:
        os.register_at_fork(**functions)
    if loaded('random'):
        loaded('_random').Random.seed(loaded('random')._inst)
    if loaded('ssl'):
        loaded('ssl').RAND_add(os.urandom(48), 48.0)
    if loaded('tempfile'):
        loaded('tempfile')._name_sequence = None
    if loaded('numpy.random'):
        loaded('numpy.random').seed()


# The memory that most programs change is the child's own before the program comes.
def warm():
    space = begin([], None)
    for sample in samples:
        exec(compile(sample, sys.argv[0], 'exec', dont_inherit=True), space)
    del space, sys.path[0]
    exit_code(0)
    sweep()
    return flush()


def set_environment(env):
    wanted = dict(word.split(b'=', 1) for word in env)
    coerced = os.environb.get(b'LC_CTYPE')
    if coerced:
        wanted[b'LC_CTYPE'] = coerced
    zone = os.environ.get('TZ')
    os.environ.clear()
    os.environb.update(wanted)
    if os.environ.get('TZ') != zone:
        import time
        time.tzset()


# The program's own arguments, variables (None: those that are there) and namespace.
def begin(argv, env):
    if env is not None:
        set_environment(env)
    if argv:
        sys.argv[1:] = sys.orig_argv[2:] = [os.fsdecode(word) for word in argv]
    path = sys.argv[0]
    sys.path.insert(0, folder)
    main = sys.modules['__main__'] = type(sys)('__main__')
    main.__dict__.update(__loader__=SourceFileLoader('__main__', path), __annotations__={},
        __builtins__=sys.modules['builtins'], __file__=path, __cached__=None)
    return main.__dict__


def exit_code(value):
    code = getattr(value, 'code', value)
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 255 if -2 ** 31 <= code < 2 ** 31 else 255
    sys.stdout.flush()
    print(code, file=sys.stderr)
    return 1


def flush():
    good = True
    for stream in sys.stdout, sys.stderr:
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception as error:
            good = stream is not sys.stdout
            sys.unraisablehook(type('', (), dict(exc_type=type(error), exc_value=error,
                exc_traceback=error.__traceback__, err_msg=None, object=stream)))
    return good


# The program's own modules go; those that were there before are left as they are, which saves most of the time that it takes.
def sweep():
    for name in 'last_exc', 'last_type', 'last_value', 'last_traceback':
        if hasattr(sys, name):
            setattr(sys, name, None)
    own = ['__main__']
    for name in reversed(sys.modules):  # what is not looked at is not copied
        if name in known:
            break
        own.append(name)
    if len(own) <= len(sys.modules) - len(known):
        own = [name for name in sys.modules if name not in known] + ['__main__']
    left = [weakref.ref(module) for module in map(sys.modules.pop, own) if hasattr(module, '__dict__')]
    gc.collect()
    for module in reversed(left):
        space = getattr(module(), '__dict__', {})
        for name in sorted(space, key=lambda name: name[:1] != '_' or name[:2] == '__'):
            if name != '__builtins__':
                space[name] = None


# What the interpreter does at its end, as far as the program can tell.
def finish():
    threads = sys.modules.get('threading')
    if threads and (len(threads._active) > 1 or atexit._ncallbacks() > callbacks or getattr(threads, '_threading_atexits', True)):
        threads._shutdown()
    atexit._run_exitfuncs()
    if log_handlers() != handlers:
        sys.modules['logging'].shutdown()
    good = flush()
    sweep()
    return flush() and good
