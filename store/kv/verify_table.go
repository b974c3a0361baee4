package kv

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"

	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/ristretto/v2/z"
	"github.com/klauspost/compress/snappy"
)

// checksums verifies tables as Badger does, without an allocation for each block: with
// Badger's own function they are most of the work of opening a store.
type checksums struct {
	block []byte // the last one, decompressed
}

// match reports whether the index and all blocks of a table have their checksums. If
// not, the table may still be one that this function does not know: Badger decides.
func (c *checksums) match(name string) (matches bool) {
	defer func() {
		if recover() != nil { // a length in the file is not one of the file
			matches = false
		}
	}()
	file, err := z.OpenMmapFile(name, os.O_RDONLY, 0)
	if err != nil {
		return false
	}
	defer file.Close(-1)
	before, sum := cutLast(file.Data)
	_, encoded := cutLast(before)
	if !hasSum(encoded, sum) {
		return false
	}
	index := fb.GetRootAsTableIndex(encoded, 0)
	for i := range index.OffsetsLength() {
		var at fb.BlockOffset
		if !index.Offsets(&at, i) || !c.matchBlock(file.Data[at.Offset():][:at.Len()]) {
			return false
		}
	}
	return index.OffsetsLength() > 0
}

// matchBlock is match for one compressed block.
func (c *checksums) matchBlock(compressed []byte) bool {
	size, err := snappy.DecodedLen(compressed)
	if err != nil || size > memTableSize {
		return false
	}
	if size > cap(c.block) {
		c.block = make([]byte, size)
	}
	data, err := snappy.Decode(c.block[:cap(c.block)], compressed)
	if err != nil {
		return false
	}
	return hasSum(cutLast(data))
}

// cutLast cuts the last field of a table or block, whose length follows it.
func cutLast(b []byte) (before, last []byte) {
	end := len(b) - 4
	begin := end - int(binary.BigEndian.Uint32(b[end:]))
	return b[:begin], b[begin:end]
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// hasSum reports whether sum is the encoded CRC-32C of data: a protobuf message whose
// second field is the number, and whose first one, the algorithm, is zero.
func hasSum(data, sum []byte) bool {
	var field [binary.MaxVarintLen64 + 1]byte
	return bytes.Equal(sum, binary.AppendUvarint(append(field[:0], 2<<3), uint64(crc32.Checksum(data, castagnoli))))
}
