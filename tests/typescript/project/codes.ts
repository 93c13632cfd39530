/** Print the classes of the desk's errors by code, each with its parent. */

import { BY_CODE } from "@sayso/client";

console.log(JSON.stringify([...BY_CODE].map(([code, kind]) => [code, kind.name, Object.getPrototypeOf(kind).name])));
