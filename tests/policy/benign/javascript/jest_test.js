// nacre: allowed low
const { add } = require('./math');

describe('add', () => {
  beforeEach(() => jest.resetModules());
  it.each([[1, 2, 3], [0, 0, 0]])('adds %i and %i', (a, b, sum) => {
    expect(add(a, b)).toBe(sum);
  });
});
