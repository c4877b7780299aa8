// Perdure: memory for opencode. `perdure install opencode --uninstall` removes this file.
import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { join } from "node:path"

const PROGRAM = "@program@"
const CHOSEN = {} // @chosen@
const DATA = process.env.XDG_DATA_HOME || join(homedir(), ".local", "share")
const SESSIONS = join(DATA, "opencode", "opencode.db")

// Returns what memory answers, or nothing; whatever goes wrong, opencode goes on.
const ask = (event, said) =>
  new Promise((done) => {
    const env = { ...process.env, ...CHOSEN }
    const run = spawn(PROGRAM, ["hook", event, "--agent", "opencode"], { env, stdio: ["pipe", "pipe", "ignore"] })
    let out = ""
    run.on("error", () => done({}))
    run.stdin.on("error", () => done({}))
    run.stdout.on("data", (data) => (out += data))
    run.on("close", () => {
      try {
        done(JSON.parse(out).hookSpecificOutput ?? {})
      } catch {
        done({})
      }
    })
    run.stdin.end(JSON.stringify({ ...said, transcript_path: SESSIONS }))
  })
const hook = async (event, said) => (await ask(event, said)).additionalContext

const EDITS = new Set(["bash", "edit", "write", "patch", "apply_patch", "multiedit"])
const MOST_OUTPUT = 100_000
const OWN = ["bash", "webfetch", "websearch"]
const BUILT_IN = /^(batch|codesearch|glob|grep|invalid|list|lsp|question|read|skill|task|todo\w*|plan_\w+)$/
// Shell commands, web pages and other servers' tools; not our own, nor what only reads the project.
const isSource = (tool) => OWN.includes(tool) || !(EDITS.has(tool) || BUILT_IN.test(tool) || tool.startsWith("perdure_"))

// `opencode run` puts a prompt in quotes.
const plain = (text) => {
  const inner = text.slice(1, -1)
  const isQuoted = text === `"${inner}"` && inner.includes(" ") && !/(?<!\\)"/.test(inner)
  return isQuoted ? inner.replaceAll('\\"', '"') : text
}

export const Perdure = async ({ directory: cwd }) => {
  const briefings = new Map() // one for each session, so that its beginning stays the same
  const keeping = new Set()
  const lines = new Map() // what is given with the result of a call, by the call
  const parents = new Map() // the session that started a subagent, by the subagent's own
  const of = (sessionID) => {
    const parent = parents.get(sessionID)
    return parent ? { session_id: parent, agent_id: sessionID, cwd } : { session_id: sessionID, cwd }
  }
  const compacted = new Set()
  const briefing = (sessionID) => {
    if (!briefings.has(sessionID)) {
      const source = compacted.delete(sessionID) ? "compact" : "startup"
      briefings.set(sessionID, hook("session-start", { session_id: sessionID, cwd, source }))
    }
    return briefings.get(sessionID)
  }

  return {
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const said = parts.filter((part) => part.type === "text" && !part.synthetic)
      if (!said.length) return
      const prompt = said.map((part) => plain(part.text)).join("\n")
      if (!parents.has(sessionID)) await briefing(sessionID) // what it says is not said again
      const event = parents.has(sessionID) ? "subagent-start" : "user-prompt-submit"
      const text = await hook(event, { ...of(sessionID), prompt })
      const id = `${parts.at(-1).id}p` // after what was said
      if (text) parts.push({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true })
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      if (!EDITS.has(tool)) return
      const said = { ...of(sessionID), tool_name: tool, tool_input: args, tool_use_id: callID }
      const answer = await ask("pre-tool-use", said)
      if (answer.permissionDecision === "deny") throw new Error(answer.permissionDecisionReason)
      if (answer.additionalContext) lines.set(callID, answer.additionalContext)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, result) => {
      const texts = [lines.get(callID)]
      lines.delete(callID)
      if (isSource(tool)) {
        const said = { ...of(sessionID), tool_name: tool, tool_input: args, tool_use_id: callID }
        const output = String(result.output ?? "").slice(-MOST_OUTPUT)
        const exit = result.metadata?.exit
        const outcome = exit ? { error: `Exit code ${exit}\n${output}` } : { tool_response: output } // as Claude Code says it
        texts.push(await hook("post-tool-use", { ...said, ...outcome }))
      }
      const text = texts.filter(Boolean).join("\n")
      if (text && typeof result.output === "string") result.output += `\n\n${text}`
      else if (text && Array.isArray(result.content)) result.content.push({ type: "text", text })
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      if (!sessionID || parents.has(sessionID)) return
      const text = await briefing(sessionID)
      if (text) system.push(text)
    },
    "experimental.session.compacting": async ({ sessionID }) => {
      await hook("pre-compact", { session_id: sessionID, cwd })
      briefings.delete(sessionID)
      compacted.add(sessionID)
    },
    event: async ({ event }) => {
      const created = event.type === "session.created" && event.properties.info
      if (created?.parentID) parents.set(created.id, created.parentID)
      if (event.type !== "session.idle" || parents.has(event.properties.sessionID)) return
      const kept = hook("stop", { session_id: event.properties.sessionID, cwd })
      keeping.add(kept)
      await kept
      keeping.delete(kept)
    },
    dispose: async () => {
      await Promise.all(keeping) // `opencode run` ends as soon as it is idle
    },
  }
}
