package v1

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Actor is who caused a transition or sent a request. The zero Actor is unknown: that
// of a transition which an older version stored.
type Actor struct {
	TokenID    string `json:"token_id,omitempty"` // Administrator for the configured token; empty: nobody asked
	Name       string `json:"name,omitempty"`     // of the token
	Via        Via    `json:"via"`
	Address    string `json:"address,omitempty"`      // of the client, without a port
	OnBehalfOf string `json:"on_behalf_of,omitempty"` // the end user that X-Berth-Actor names
}

// Via is the way on which a request arrived.
type Via string

// The values of Via. ViaController is that of an actor without a token: berth acts by
// itself.
const (
	ViaHTTP       Via = "http"
	ViaWebSocket  Via = "websocket"
	ViaSFTP       Via = "sftp"
	ViaController Via = "controller"
)

// Administrator is the TokenID and the Name of the configured token.
const Administrator = "administrator"

// Controller returns the actor of what nobody asked for.
func Controller() Actor { return Actor{Via: ViaController} }

// String returns the name of an actor for a log.
func (a Actor) String() string {
	name := cmp.Or(a.Name, a.TokenID, string(a.Via))
	if a.OnBehalfOf != "" {
		name += " on behalf of " + a.OnBehalfOf
	}
	return name
}

// maxName is the maximum number of characters of a name.
const maxName = 128

// IsName reports whether text may name a token or an end user: at most 128 printable
// characters.
func IsName(text string) bool {
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > maxName {
		return false
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// IsReserved reports whether an actor without a minted token has this name, in any case and
// with any spaces around it.
func IsReserved(name string) bool {
	name = strings.TrimSpace(name)
	return strings.EqualFold(name, Administrator) || strings.EqualFold(name, string(ViaController))
}
