package doctor

import (
	"context"
	"fmt"
	"strings"

	"berth/api/client"
)

// maxNamed bounds how many volumes a message names.
const maxNamed = 5

// checkVolumes checks whether the daemon has found the directories of all volumes.
func checkVolumes(ctx context.Context, e *examination) Result {
	if s := e.daemon(); !s.answers {
		return warning("unknown: no daemon answers", "see the check daemon")
	}
	list, err := e.Daemon.Volumes().List(ctx)
	if err != nil {
		return warning("unknown: the daemon does not list its volumes: "+err.Error(), "see the check daemon")
	}
	return judgeVolumes(list)
}

func judgeVolumes(list []client.Volume) Result {
	var missing []string
	for _, v := range list {
		if v.Ready {
			continue
		}
		text := v.Path
		if len(v.UsedBy) > 0 {
			text += " of " + strings.Join(v.UsedBy, ", ")
		}
		missing = append(missing, text)
	}
	if len(missing) == 0 {
		return ok(fmt.Sprintf("the directories of all %d volumes exist", len(list)))
	}
	named, more := missing, ""
	if len(missing) > maxNamed {
		named, more = missing[:maxNamed], fmt.Sprintf(" and %d more", len(missing)-maxNamed)
	}
	return failed("missing or unusable: "+strings.Join(named, "; ")+more,
		"stop the containers, whose writes may be lost; then mount the directory, move it back, or restore a backup (berth backup restore)")
}
