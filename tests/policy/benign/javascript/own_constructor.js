// nacre: allowed low
class A {
  copy() {
    return new this.constructor(1);
  }
}
function Old() {}
Old.prototype = Object.create(A.prototype);
Old.prototype.constructor = Old;
const e = new Error('x');
console.log(new A().copy(), e.constructor === Error, e.constructor.name, Object.getPrototypeOf(e).constructor.name);
