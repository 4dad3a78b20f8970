// nacre: allowed low
enum Colour { Red = 'red', Green = 'green' }

interface Shape<T extends number = number> {
  readonly area: T;
  colour?: Colour;
}

abstract class Base implements Shape {
  protected constructor(public readonly name: string, private sides: number[] = []) {}
  abstract get area(): number;
  describe(this: Base): string {
    return `${this.name}: ${this.area.toFixed(2)} (${this.sides.length})`;
  }
}

class Square extends Base {
  constructor(private readonly side: number) {
    super('square', [side, side, side, side]);
  }
  get area(): number {
    return this.side ** 2;
  }
}

namespace Tools {
  export const total = <T extends Shape>(shapes: readonly T[]): number =>
    shapes.reduce((sum, shape) => sum + shape.area, 0);
}

type Named = Pick<Base, 'name'> & { colour?: Colour };

function isNamed(value: unknown): value is Named {
  return typeof (value as Named)?.name === 'string';
}

const shapes = [new Square(2), new Square(3)] satisfies Shape[];
console.log(shapes.filter(isNamed).map((shape) => shape.describe()), Tools.total(shapes!));
