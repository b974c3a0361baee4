package intent

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	v1 "berth/api/v1"
)

const defaultTTL = time.Hour

// CheckToken adds the errors of a request to f, and returns the lifetime of the
// token, which is at most longest.
func CheckToken(f *v1.FieldErrors, r v1.TokenRequest, longest time.Duration) time.Duration {
	if !v1.IsName(r.Name) {
		f.Add("name", "must be at most 128 printable characters")
	}
	if v1.IsReserved(r.Name) {
		f.Add("name", "must not be %s or %s: logs show other actors by these names", v1.Administrator, v1.ViaController)
	}
	if !v1.IsName(r.OnBehalfOf) {
		f.Add("on_behalf_of", "must be at most 128 printable characters")
	}
	if ip, err := netip.ParseAddr(r.Address); r.Address != "" && (err != nil || ip.Zone() != "") {
		f.Add("address", "must be an IP address, such as 192.0.2.7")
	}
	checkScopes(f, r.Scopes, r.Containers != nil)
	checkContainers(f, r.Containers)
	return checkTTL(f, r.TTL, longest)
}

func checkTTL(f *v1.FieldErrors, text *string, longest time.Duration) time.Duration {
	if text == nil {
		return min(defaultTTL, longest)
	}
	ttl, err := v1.ParseDuration(*text)
	switch {
	case err != nil:
		f.Add("ttl", "must be a duration such as 90s, 1h30m or 7d")
	case ttl < time.Second:
		f.Add("ttl", "must be at least 1s")
	case ttl > longest:
		f.Add("ttl", "must be at most %s (authorization.max_ttl)", v1.Duration(longest))
	}
	return ttl
}

func checkScopes(f *v1.FieldErrors, want []v1.Scope, limited bool) {
	if want != nil && len(want) == 0 {
		f.Add("scopes", "must name at least one scope")
	}
	for i, scope := range want {
		if !slices.Contains(v1.Scopes(), scope) {
			f.Add(fmt.Sprintf("scopes[%d]", i), "must be one of read, power, console, files, network, admin, arrive")
		} else if limited && !slices.Contains(v1.TenantScopes(), scope) {
			f.Add(fmt.Sprintf("scopes[%d]", i),
				"must not be %s with containers: a token that is limited to containers may hold read, power, console and files", scope)
		}
	}
}

func checkContainers(f *v1.FieldErrors, want []string) {
	if want != nil && len(want) == 0 {
		f.Add("containers", "must name at least one container")
	}
	for i, id := range want {
		checkID(f, fmt.Sprintf("containers[%d]", i), id)
	}
}
