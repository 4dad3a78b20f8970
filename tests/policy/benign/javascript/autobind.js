// nacre: allowed low
class Counter {
  count = 0;
  constructor() {
    for (const name of Object.getOwnPropertyNames(Counter.prototype))
      if (name !== 'constructor' && typeof this[name] === 'function') this[name] = this[name].bind(this);
  }
  add() { return ++this.count; }
}
const { add } = new Counter();
console.log(add(), Object.getOwnPropertyNames(Math).length);
