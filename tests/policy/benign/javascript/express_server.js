// nacre: allowed low
const express = require('express');

const app = express();
app.use(express.json());

const items = new Map();
app.get('/items/:id', (request, response) => {
  const item = items.get(request.params.id);
  if (!item) return response.status(404).json({ error: 'not found' });
  response.json(item);
});
app.put('/items/:id', (request, response) => {
  items.set(request.params.id, request.body);
  response.status(204).end();
});
app.listen(3000, () => console.log('listening'));
