// Package deb holds the parts of berth's Debian package, which hack/release.sh builds,
// and the tests of releases.
package deb
