// nacre: allowed low
'use strict';

function* primes(limit) {
  const sieve = new Uint8Array(limit + 1);
  for (let n = 2; n <= limit; n++) {
    if (sieve[n]) continue;
    yield n;
    for (let k = n * n; k <= limit; k += n) sieve[k] = 1;
  }
}

const text = 'level';
const reversed = text.split('').reverse().join('');
console.log([...primes(50)], text === reversed, /a+b/.exec('aab')[0]);
