// Written by `sayso hook install opencode`. The desk judges each call before it runs.
import { spawn } from "node:child_process"

const HOOK = "sayso hook opencode"

const ask = (call) =>
  new Promise((resolve, reject) => {
    const hook = spawn("sh", ["-c", HOOK], { stdio: ["pipe", "pipe", "pipe"] })
    const texts = { stdout: "", stderr: "" }
    for (const name of Object.keys(texts)) hook[name].on("data", (part) => (texts[name] += part))
    hook.on("error", reject)
    hook.on("close", (status) => (status === 0 ? resolve(texts.stdout) : reject(new Error(texts.stderr))))
    hook.stdin.on("error", () => {}) // the exit status says why
    hook.stdin.end(JSON.stringify(call))
  })

export const Sayso = async ({ directory, worktree }) => ({
  "tool.execute.before": async ({ tool, sessionID, callID }, output) => {
    const answer = JSON.parse(await ask({ tool, sessionID, callID, args: output.args, directory, worktree }))
    if (answer.decision !== "allow" && answer.decision !== "none") throw new Error(answer.reason)
    if (answer.args) {
      for (const name of Object.keys(output.args)) delete output.args[name]
      Object.assign(output.args, answer.args)
    }
  },
})
