#!/usr/bin/env node
'use strict'
// Runs the binary of this machine's package.
const { spawn } = require('node:child_process')
const { binary } = require('..')

const child = spawn(binary(), process.argv.slice(2), { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('error', (err) => { console.error(`orrery: ${err.message}`); process.exit(1) })
child.on('exit', (code, signal) => { process.exit(signal ? 128 : code) })
