'use strict'
const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')

// binary returns the path of the binary of this machine.
function binary () {
  if (process.env.ORRERY_BINARY) return process.env.ORRERY_BINARY
  const name = `@orrerydb/orrery-${process.platform}-${process.arch}`
  const exe = process.platform === 'win32' ? 'orrery.exe' : 'orrery'
  try {
    return require.resolve(`${name}/bin/${exe}`)
  } catch {
    throw new Error(`orrery has no binary for ${process.platform} on ${process.arch}: the package ${name} isn't ` +
      'installed (were optional dependencies left out?)')
  }
}

// start starts a server in memory, on free ports, with test controls. The result has the connection strings, as
// /orrery/connect, and control and stop.
async function start ({ args = [], timeout = 20000 } = {}) {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'orrery-'))
  const file = path.join(dir, 'connect.json')
  const any = '127.0.0.1:0'
  const child = spawn(binary(), ['serve', '--memory', '--test-controls', '--connect-file', file, '--nosql-addr', any,
    '--table-addr', any, '--gremlin-addr', any, '--mongo-addr', any, '--admin-addr', any, '--log-level', 'warn',
    ...args], { stdio: ['ignore', 'ignore', 'inherit'] })
  let ended = null
  child.on('exit', (code) => { ended = code ?? 1 })
  child.on('error', (err) => { ended = err.message })
  const stop = () => new Promise((resolve) => {
    fs.rmSync(dir, { recursive: true, force: true })
    if (ended !== null) return resolve()
    child.once('exit', resolve)
    child.kill('SIGTERM')
  })
  const until = Date.now() + timeout
  for (;;) {
    if (ended !== null) throw new Error(`orrery ended: ${ended}`)
    if (Date.now() > until) { await stop(); throw new Error('orrery is not ready') }
    try {
      const connect = JSON.parse(fs.readFileSync(file, 'utf8'))
      const ready = await fetch(`${connect.admin.endpoint}ready`)
      if (ready.ok) {
        const control = async (method, name, body) => {
          const res = await fetch(`${connect.admin.endpoint}orrery/test${name && '/' + name}`, {
            method, headers: { authorization: `Bearer ${connect.key}` }, body: body && JSON.stringify(body)
          })
          const text = await res.text()
          if (!res.ok) throw new Error(`${name}: ${res.status} ${text}`)
          return text ? JSON.parse(text) : null
        }
        return { ...connect, control, stop }
      }
    } catch (err) {
      if (err.code !== 'ENOENT' && err.name !== 'SyntaxError' && err.name !== 'TypeError') throw err
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

module.exports = { binary, start }
