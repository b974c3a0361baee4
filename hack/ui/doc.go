// Package ui tests the operator's page: its pure modules in Node.js (unit), its code
// with ESLint and Prettier, and the whole page in Chromium against the real daemon.
//
// npm.sh installs the packages of package-lock.json into .cache, vendor.mjs copies those
// that the page needs, and lint.sh formats and checks its code.
package ui
