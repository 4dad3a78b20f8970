// Takes webhooks of nacre serve and verifies their signature: node webhook.js KEY-FILE PORT
'use strict';
const crypto = require('crypto'), fs = require('fs'), http = require('http');

const key = Buffer.from(fs.readFileSync(process.argv[2], 'utf8'), 'hex');  // 64 hex digits are 32 bytes

function isSigned(body, signature) {
    const expected = Buffer.from('sha256=' + crypto.createHmac('sha256', key).update(body).digest('hex'));
    const sent = Buffer.from(signature);
    return sent.length === expected.length && crypto.timingSafeEqual(sent, expected);
}

http.createServer((request, response) => {
    const pieces = [];
    request.on('data', piece => pieces.push(piece));
    request.on('end', () => {
        const body = Buffer.concat(pieces);  // the bytes as they came
        if (!isSigned(body, request.headers['x-nacre-signature'] || '')) return response.writeHead(403).end();
        const alert = JSON.parse(body);
        console.log(alert.alert, alert.state, alert.value);
        response.writeHead(204).end();
    });
}).listen(Number(process.argv[3]), '127.0.0.1');
