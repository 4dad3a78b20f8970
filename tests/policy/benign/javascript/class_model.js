// nacre: allowed low
class Queue {
  #items = [];
  push(...items) { this.#items.push(...items); return this; }
  pop() { return this.#items.shift(); }
  get size() { return this.#items.length; }
  static from(iterable) { return new Queue().push(...iterable); }
}
module.exports = { Queue };
console.log(Queue.from([1, 2]).size, Object.getPrototypeOf(new Queue()).constructor.name);
