// nacre: allowed low
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';

const file = process.argv[2] ?? 'package.json';
const data = JSON.parse(await readFile(file, 'utf8'));
data.version = data.version.replace(/\d+$/, (n) => Number(n) + 1);
await writeFile(path.join(path.dirname(file), 'out.json'), JSON.stringify(data, null, 2));
if (!data.name) process.exit(1);
