package store

import (
	"encoding/json"
	"errors"
	"fmt"

	v1 "berth/api/v1"
)

// nodeKey is the key of the node's conditions.
const nodeKey = "meta/node"

// NodeConditions returns the conditions of the node itself. One that is missing was
// always True.
func NodeConditions(tx *Tx) (list []v1.Condition, err error) {
	err = tx.read(nodeKey, func(b []byte) error { return json.Unmarshal(b, &list) })
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return list, err
}

// SetNodeCondition sets a condition of the node itself in this update. If that changes
// its status, it emits a message without a container, with the message and the reason
// of c.
func SetNodeCondition(tx *Tx, c v1.Condition) error {
	list, err := NodeConditions(tx)
	if err != nil {
		return fmt.Errorf("conditions of the node: %w", err)
	}
	before := v1.FindCondition(list, c.Type).Status
	if before == c.Status || before == "" && c.Status == v1.True {
		return nil
	}
	value, err := json.Marshal(v1.SetCondition(list, c, tx.now))
	if err != nil {
		return err
	}
	Emit(tx, v1.Event{Event: v1.EventMessage, Data: c.Message, Reason: c.Reason, Actor: tx.Actor()})
	return tx.set(nodeKey, value)
}
