package api

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/sjson"
)

// splice appends a chunk to dst with the metadata as its last field. A field of that name from another gateway
// gives way.
func splice(dst, chunk []byte, meta *metadata, ours bool) []byte {
	chunk = bytes.TrimRight(without(chunk, ours), " \t\r\n")
	if len(chunk) < 2 || chunk[len(chunk)-1] != '}' {
		return append(dst, chunk...)
	}
	body := bytes.TrimRight(chunk[:len(chunk)-1], " \t\r\n")
	dst = append(dst, body...)
	if body[len(body)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, `"holdfast":`...)
	return append(append(dst, meta.bytes()...), '}')
}

// without drops a holdfast field that is there.
func without(chunk []byte, there bool) []byte {
	if !there {
		return chunk
	}
	out, err := sjson.DeleteBytes(chunk, "holdfast")
	if err != nil {
		return chunk
	}
	return out
}

// frame appends data as one server-sent event. Line ends would break the frame: JSON has none that matter.
func frame(dst, data []byte) []byte {
	dst = append(dst, "data: "...)
	if bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		dst = append(dst, data...)
	} else {
		dst = appendCompact(dst, data)
	}
	return append(dst, "\n\n"...)
}

func appendCompact(dst, data []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, data) != nil {
		return append(dst, bytes.Map(func(r rune) rune {
			if r == '\n' || r == '\r' {
				return ' '
			}
			return r
		}, data)...)
	}
	return append(dst, out.Bytes()...)
}

// flat is JSON on one line.
func flat(data []byte) []byte {
	if bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	return appendCompact(nil, data)
}
