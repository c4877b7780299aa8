// Perdure: memory for opencode. `perdure install opencode --uninstall` removes this file.
import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { join } from "node:path"

const PROGRAM = "@program@"
const CHOSEN = {} // @chosen@
const DATA = process.env.XDG_DATA_HOME || join(homedir(), ".local", "share")
const SESSIONS = join(DATA, "opencode", "opencode.db")

// Returns what memory has to say, or nothing; whatever goes wrong, opencode goes on.
const hook = (event, said) =>
  new Promise((done) => {
    const env = { ...process.env, ...CHOSEN }
    const run = spawn(PROGRAM, ["hook", event, "--agent", "opencode"], { env, stdio: ["pipe", "pipe", "ignore"] })
    let out = ""
    run.on("error", () => done(""))
    run.stdin.on("error", () => done(""))
    run.stdout.on("data", (data) => (out += data))
    run.on("close", () => {
      try {
        done(JSON.parse(out).hookSpecificOutput.additionalContext)
      } catch {
        done("")
      }
    })
    run.stdin.end(JSON.stringify({ ...said, transcript_path: SESSIONS }))
  })

// `opencode run` puts a prompt in quotes.
const plain = (text) => {
  const inner = text.slice(1, -1)
  const isQuoted = text === `"${inner}"` && inner.includes(" ") && !/(?<!\\)"/.test(inner)
  return isQuoted ? inner.replaceAll('\\"', '"') : text
}

export const Perdure = async ({ directory: cwd }) => {
  const briefings = new Map() // one for each session, so that its beginning stays the same
  const keeping = new Set()
  const compacted = new Set()
  const subagents = new Set() // their sessions: what they are asked is not the user's
  const briefing = (sessionID) => {
    if (!briefings.has(sessionID)) {
      const event = subagents.has(sessionID) ? "subagent-start" : "session-start"
      const source = compacted.delete(sessionID) ? "compact" : "startup"
      briefings.set(sessionID, hook(event, { session_id: sessionID, cwd, source }))
    }
    return briefings.get(sessionID)
  }

  return {
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const said = parts.filter((part) => part.type === "text" && !part.synthetic)
      if (!said.length || subagents.has(sessionID)) return
      const prompt = said.map((part) => plain(part.text)).join("\n")
      await briefing(sessionID) // what it says is not said again
      const text = await hook("user-prompt-submit", { session_id: sessionID, cwd, prompt })
      const id = `${parts.at(-1).id}p` // after what was said
      if (text) parts.push({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true })
    },
    "experimental.chat.system.transform": async ({ sessionID }, { system }) => {
      if (!sessionID) return
      const text = await briefing(sessionID)
      if (text) system.push(text)
    },
    "experimental.session.compacting": async ({ sessionID }) => {
      await hook("pre-compact", { session_id: sessionID, cwd })
      briefings.delete(sessionID)
      compacted.add(sessionID)
    },
    event: async ({ event }) => {
      if (event.type === "session.created" && event.properties.info.parentID) subagents.add(event.properties.info.id)
      if (event.type !== "session.idle" || subagents.has(event.properties.sessionID)) return
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
