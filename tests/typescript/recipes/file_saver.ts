// LangGraph's saver in memory, kept in a file. A service takes the saver of its database.
import { existsSync, readFileSync } from "node:fs";
import { deserialize, serialize } from "node:v8";

import { MemorySaver } from "@langchain/langgraph";

import { save } from "./parts.ts";

export class FileSaver extends MemorySaver {
  file: string;

  constructor(file: string) {
    super();
    this.file = file;
    if (existsSync(file)) Object.assign(this, deserialize(readFileSync(file)));
  }

  override async put(...args: Parameters<MemorySaver["put"]>) {
    const config = await super.put(...args);
    this.save();
    return config;
  }

  override async putWrites(...args: Parameters<MemorySaver["putWrites"]>) {
    await super.putWrites(...args);
    this.save();
  }

  save() {
    save(this.file, serialize({ storage: this.storage, writes: this.writes }));
  }
}
