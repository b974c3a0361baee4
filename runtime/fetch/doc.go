// Package fetch downloads URLs that tenants name.
//
// A tenant must not reach through the host what he cannot reach himself. So the address
// is checked at each connection, after its name was resolved and after each redirect:
// there is no moment between the check and its use. Proxies of the environment are
// ignored. Everything is bounded: headers, redirects, time, and time without progress.
// The content may have to have a checksum.
//
// The package knows neither volumes nor who asked.
package fetch
