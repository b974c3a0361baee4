// Package ui holds the operator's page: HTML, style and ES modules, which no step of a
// build changes. The page uses the public API and nothing else.
//
// The files of one build have one version, the hash of all their content, which is a
// part of their paths. So a browser may keep them forever, an import of a module is
// relative, and a page never mixes the modules of two builds.
//
// The libraries in assets/vendor come from npm: hack/ui/vendor.mjs copies them, and
// vendor.json has their versions, licences and checksums.
//
// The package must not know who serves the files, and nothing of the daemon.
package ui
