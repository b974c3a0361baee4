package server

import (
	"berth/api/egg"
	v1 "berth/api/v1"
)

// importEgg answers POST /eggs with the container that an egg describes. It changes nothing.
func importEgg(_ *call, r v1.EggRequest) (v1.EggImport, error) { return egg.Import(r) }
