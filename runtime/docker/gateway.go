package docker

import "context"

// Gateway returns the address of the host as containers see it, that of their network's bridge. It
// creates the network if it is missing.
func (e *Engine) Gateway(ctx context.Context) (string, error) {
	if err := e.net.ensure(ctx); err != nil {
		return "", err
	}
	b, err := e.net.bridge(ctx)
	for _, gateway := range b.Gateways {
		if gateway.Is4() {
			return gateway.String(), err
		}
	}
	return "", err
}
