/* The installers of packages. */
#include "engine/installer.h"

#include "base/place.h"

#include <string.h>

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Debian's own packages count as they are; extras of one cannot be told, so they are installed. */
static const char python_probe[] =
	"import importlib.metadata, json, re, sys\n"
	"try:\n"
	"    from packaging.requirements import Requirement\n"
	"except ImportError:\n"
	"    try:\n"
	"        from pip._vendor.packaging.requirements import Requirement\n"
	"    except ImportError:\n"
	"        Requirement = None\n"
	"def find(text):\n"
	"    name = re.match(r'[A-Za-z0-9._-]*', text).group()\n"
	"    try:\n"
	"        version = importlib.metadata.version(name)\n"
	"    except importlib.metadata.PackageNotFoundError:\n"
	"        return None\n"
	"    if name != text:\n"
	"        try:\n"
	"            wanted = Requirement(text)\n"
	"            fits = not wanted.extras and wanted.specifier.contains(version, True)\n"
	"        except Exception:\n" /* no such module, or a version that is none */
	"            return None\n"
	"        if not fits:\n"
	"            return None\n"
	"    return {'name': name, 'version': version} if version else None\n"
	"found = [find(text) for text in sys.argv[1:]]\n"
	"json.dump({'interpreter': 'Python/' + sys.version.split()[0],\n"
	"           'packages': found if all(found) else None}, sys.stdout)\n";

/*
 * First on the limited disk of the box, then over to the layer: nothing out there limits that.
 * NACRE_INDEX has the URLs of indexes, if they are to be asked.
 */
static const char python_install[] =
	"import importlib.util, json, os, re, subprocess, sys, urllib.parse\n"
	"if not importlib.util.find_spec('pip'):\n"
	"    sys.exit(4)\n"
	"urls = os.environ.get('NACRE_INDEX', '').split()\n"
	"where = ['--index-url', urls[0]] if urls else ['--no-index']\n"
	"for url in urls[1:]:\n"
	"    where += ['--extra-index-url', url]\n"
	"for url in urls:\n"
	"    if url.startswith('http:'):\n"
	"        where += ['--trusted-host', urllib.parse.urlsplit(url).netloc]\n"
	"if os.path.isdir('" NC_BOX_LAYER "1'):\n"
	"    where += ['--find-links', '" NC_BOX_LAYER "1']\n"
	"pip = subprocess.Popen([sys.executable, '-I', '-m', 'pip', 'install', *where,\n"
	"    '--only-binary', ':all:', '--no-compile', '--retries', '1',\n"
	"    '--no-cache-dir', '--no-input', '--disable-pip-version-check',\n"
	"    '--no-warn-script-location', '--progress-bar', 'off', '--report', '/tmp/report',\n"
	"    '--target', '/tmp/site', '--', *sys.argv[1:]],\n"
	"    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace')\n"
	"lacks, full = None, False\n"
	"for line in pip.stdout:\n"
	"    sys.stderr.write(line)\n"
	"    found = re.match('ERROR: No matching distribution found for (.*)', line)\n"
	"    lacks = found.group(1) if found else lacks\n"
	"    full = full or 'No space left on device' in line\n"
	"if pip.wait() != 0 and lacks:\n"
	"    json.dump({'lacks': lacks}, sys.stdout)\n"
	"    sys.exit(3)\n"
	"if pip.returncode != 0:\n"
	"    sys.exit(5 if full else 1)\n"
	"packages = []\n"
	"for item in json.load(open('/tmp/report'))['install']:\n"
	"    source = item['download_info']\n"
	"    kind, _, digest = source['archive_info']['hash'].partition('=')\n"
	"    if kind != 'sha256':\n"
	"        sys.exit('no SHA-256 of ' + source['url'])\n"
	"    packages.append({'name': item['metadata']['name'],\n"
	"        'version': item['metadata']['version'], 'sha256': digest,\n"
	"        'file': os.path.basename(urllib.parse.unquote(source['url']))})\n"
	"copy = subprocess.run(['cp', '-R', '/tmp/site', '" NC_BOX_LAYER "0/site'],\n"
	"    stderr=subprocess.PIPE, text=True, errors='replace')\n"
	"sys.stderr.write(copy.stderr)\n"
	"if copy.returncode != 0:\n"
	"    sys.exit(6 if 'No space left on device' in copy.stderr else 1)\n"
	"subprocess.run(['chmod', '-R', 'a+rX,go-w,u+w', '" NC_BOX_LAYER "0'], check=True)\n"
	"subprocess.run(['find', '" NC_BOX_LAYER "0', '-type', 'f', '-exec', 'chmod', 'a-w',\n"
	"    '{}', '+'], check=True)\n"
	"json.dump({'interpreter': 'Python/' + sys.version.split()[0], 'packages': packages},\n"
	"    sys.stdout)\n";

/*
 * npm resolves ranges by asking a registry: that of NACRE_INDEX, or the tarballs are served as one,
 * on the loopback of the box, which leads nowhere else. What came from a registry is digested from
 * npm's cache, where it lies by its SHA-512.
 */
static const char javascript_install[] =
	"'use strict';\n"
	"const crypto = require('crypto'), fs = require('fs'), http = require('http');\n"
	"const zlib = require('zlib'), {execFileSync, spawn} = require('child_process');\n"
	"const source = '" NC_BOX_LAYER "1/', wanted = process.argv.slice(1);\n"
	"const registry = process.env.NACRE_INDEX;\n"
	"const packages = new Map(), tarballs = new Map(), lacks = new Set();\n"
	"function manifest(tar) {\n"
	"    for (let at = 0; at + 512 <= tar.length;) {\n"
	"        const name = tar.toString('utf8', at, at + 100).split('\\0')[0];\n"
	"        const size = parseInt(tar.toString('latin1', at + 124, at + 136), 8) || 0;\n"
	"        if (/^[^/]+\\/package\\.json$/.test(name))\n"
	"            return JSON.parse(tar.toString('utf8', at + 512, at + 512 + size));\n"
	"        at += 512 + Math.ceil(size / 512) * 512;\n"
	"    }\n"
	"    throw Error('no package.json');\n"
	"}\n"
	"function add(file, base) {\n"
	"    const data = fs.readFileSync(source + file);\n"
	"    const made = manifest(zlib.gunzipSync(data, {maxOutputLength: 512 << 20}));\n"
	"    const digest = kind => crypto.createHash(kind).update(data);\n"
	"    const integrity = 'sha512-' + digest('sha512').digest('base64');\n"
	"    made.dist = {tarball: base + '-/' + encodeURIComponent(file), integrity};\n"
	"    tarballs.set(integrity, {file, sha256: digest('sha256').digest('hex')});\n"
	"    if (!packages.has(made.name)) packages.set(made.name, new Map());\n"
	"    packages.get(made.name).set(made.version, made);\n"
	"}\n"
	"function describe(name) {\n"
	"    const versions = packages.get(name);\n"
	"    const order = [...versions.keys()].sort((a, b) => b.includes('-') - a.includes('-') "
	"||\n"
	"        a.localeCompare(b, 'en', {numeric: true}));\n"
	"    return JSON.stringify({name, 'dist-tags': {latest: order.at(-1)},\n"
	"        versions: Object.fromEntries(versions)});\n"
	"}\n"
	"function answer(request, response) {\n"
	"    const name = decodeURIComponent(request.url.slice(1));\n"
	"    if (packages.has(name)) return response.end(describe(name));\n"
	"    const file = /^-\\/([^/]+\\.tgz)$/.exec(name);\n"
	"    if (file) return fs.createReadStream(source + file[1]).pipe(response);\n"
	"    lacks.add(name);\n"
	"    response.writeHead(404).end('{}');\n"
	"}\n"
	"function fetched(integrity, resolved) {\n"
	"    const hex = Buffer.from(integrity.split('-')[1], 'base64').toString('hex');\n"
	"    const path = `/tmp/npm/_cacache/content-v2/sha512/${hex.slice(0, 2)}/` +\n"
	"        `${hex.slice(2, 4)}/${hex.slice(4)}`;\n"
	"    return {file: decodeURIComponent(resolved.split('/').pop()),\n"
	"        sha256: "
	"crypto.createHash('sha256').update(fs.readFileSync(path)).digest('hex')};\n"
	"}\n"
	"function finish(code, said) {\n"
	"    const absent = /404[^\\n]*'(@?[^'@]+)@/.exec(said);\n"
	"    if (registry && absent) lacks.add(absent[1]);\n"
	"    const version = /No matching version found for (\\S+?)\\.?$/m.exec(said);\n"
	"    const name = version ? version[1] : [...lacks][0];\n"
	"    if (code !== 0 && name) console.log(JSON.stringify({lacks: name}));\n"
	"    if (code !== 0) process.exit(said.includes('ENOSPC') ? 5 : name ? 3 : 1);\n"
	"    const lock = '/tmp/env/node_modules/.package-lock.json', layer = "
	"'" NC_BOX_LAYER "0';\n"
	"    const tree = Object.entries(JSON.parse(fs.readFileSync(lock)).packages);\n"
	"    fs.unlinkSync(lock);\n"
	"    try {\n"
	"        execFileSync('cp', ['-R', '/tmp/env/node_modules', layer]);\n"
	"    } catch (error) {\n"
	"        process.exit(String(error.stderr).includes('No space left') ? 6 : 1);\n"
	"    }\n"
	"    execFileSync('chmod', ['-R', 'a+rX,go-w,u+w', layer]);\n"
	"    execFileSync('find', [layer, '-type', 'f', '-exec', 'chmod', 'a-w', '{}', '+']);\n"
	"    console.log(JSON.stringify({interpreter: 'Node.js/' + process.versions.node,\n"
	"        packages: tree.map(([path, {version, integrity, resolved}]) => ({version,\n"
	"            name: path.slice(path.lastIndexOf('node_modules/') + 13),\n"
	"            ...(tarballs.get(integrity) || fetched(integrity, resolved))}))}));\n"
	"    process.exit(0);\n"
	"}\n"
	"const server = http.createServer(answer).listen(0, '127.0.0.1', () => {\n"
	"    const base = registry || `http://127.0.0.1:${server.address().port}/`;\n"
	"    for (const file of (registry ? [] : fs.readdirSync(source)).filter(name => "
	"name.endsWith('.tgz')).sort())\n"
	"        try { add(file, base); } catch (error) { console.error(file + ': ' + "
	"error.message); }\n"
	"    fs.mkdirSync('/tmp/env');\n"
	"    fs.writeFileSync('/tmp/env/package.json', '{}');\n"
	"    const npm = spawn('npm', ['install', '--registry', base, '--ignore-scripts', "
	"'--no-audit',\n"
	"        '--no-fund', '--no-bin-links', '--no-update-notifier', '--cache', '/tmp/npm',\n"
	"        '--fetch-retries', '0', '--', ...wanted], {cwd: '/tmp/env', stdio: ['ignore', "
	"'pipe', 'pipe']});\n"
	"    let said = '';\n"
	"    const hear = data => { said = (said + data).slice(-65536); "
	"process.stderr.write(data); };\n"
	"    npm.stdout.on('data', hear);\n"
	"    npm.stderr.on('data', hear);\n"
	"    npm.on('error', error => process.exit(error.code === 'ENOENT' ? 4 : 1));\n"
	"    npm.on('close', code => finish(code, said));\n"
	"});\n";

static const struct nc_installer pip = {
	.interpreter = "python3",
	.words = WORDS("python3", "-I", "-c"),
	.probe = python_probe,
	.install = python_install,
	.source_key = "packages.python.wheels",
	.source_noun = "wheel directory",
	.index_key = "packages.python.index",
	.fix = "apt-get install python3-pip",
	.env = WORDS("PYTHONPATH=" NC_BOX_LAYER "0/site"),
};

static const struct nc_installer npm = {
	.interpreter = "node",
	.words = WORDS("node", "-e"),
	.install = javascript_install,
	.source_key = "packages.javascript.tarballs",
	.source_noun = "tarball directory",
	.index_key = "packages.javascript.registry",
	.fix = "apt-get install npm",
	.env = WORDS("NODE_PATH=" NC_BOX_LAYER "0/node_modules"),
};

/*
 * Since 1.20 Go comes without its library compiled. What does not compile here, or not in time,
 * does so with the program that wants it. All goes through the limited disk of the box.
 */
static const char go_warm[] =
	"command -v go >/dev/null || exit 4\n"
	"version=$(go env GOVERSION) || exit 1\n"
	"timeout 300 go build -buildvcs=false std >&2\n"
	"mkdir -p \"$GOCACHE\" || exit 5\n"
	"if ! cp -R \"$GOCACHE\" " NC_BOX_LAYER "0/cache 2>/tmp/said; then\n"
	"    cat /tmp/said >&2\n"
	"    grep -q 'No space left on device' /tmp/said && exit 6\n"
	"    exit 5\n"
	"fi\n"
	"chmod -R a+rX,go-w " NC_BOX_LAYER "0/cache || exit 5\n"
	"echo '{\"interpreter\": \"'\"${version%% *}\"'\", \"packages\": []}'\n";

static const struct nc_installer go_warmer = {
	.interpreter = "go",
	.words = WORDS("sh", "-c"),
	.install = go_warm,
	.fix = "apt-get install golang-go",
	.env = WORDS("GOCACHE=" NC_BOX_LAYER "0/cache"),
};

enum nc_language nc_installer_language(enum nc_language language)
{
	return language == NC_TYPESCRIPT ? NC_JAVASCRIPT : language;
}

const struct nc_installer *nc_installer_of(enum nc_language language)
{
	return language == NC_PYTHON ? &pip : language == NC_JAVASCRIPT ? &npm : NULL;
}

const struct nc_installer *nc_warmer_of(enum nc_language language)
{
	return language == NC_GO ? &go_warmer : NULL;
}

bool nc_installer_takes(enum nc_language language, const char *package)
{
	const char *range = *package ? strchr(package + 1, '@') : NULL;
	size_t name = range ? (size_t)(range - package) : strlen(package);

	if (language == NC_PYTHON)
		return !strchr(package, '@');
	return strcspn(package, "[<>=!~,") >= name;
}
