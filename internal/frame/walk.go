package frame

import "bytes"

// Walker walks the chain of frames of one file held in memory.
type Walker struct {
	ID  Identity
	Buf []byte // the file from its first byte on
	Off int64  // offset of the next frame; after Next returned false, where the chain ends
	Sum uint32 // Sum of the last frame walked: what the next one's Prev must be
}

// Next returns the next frame of the chain, or false where it ends: at the end
// of Buf, or at bytes that are not an intact frame linked to the one before.
func (w *Walker) Next() (Header, []byte, bool) {
	if w.Off > int64(len(w.Buf)) {
		return Header{}, nil, false
	}
	h, payload, ok := Decode(w.Buf[w.Off:], w.ID, w.Off)
	if !ok || h.Prev != w.Sum {
		return Header{}, nil, false
	}
	w.Off += int64(h.Length)
	w.Sum = h.Sum
	return h, payload, true
}

// Tail describes the bytes behind the end of a chain.
type Tail struct {
	Bytes   int64  // up to the last byte that is not zero; 0 if the rest is all zero
	Headers int    // intact frame headers found
	Durable uint64 // greatest durable mark any of them carries
}

// Tail examines what stands behind the place where Next stopped. Pages of
// unsynced frames reach the disk in any order, so intact frames behind a hole are
// legitimate; the caller compares Durable with the hole's position. Only headers
// are checked, which keeps the scan linear even on hostile bytes.
func (w *Walker) Tail() Tail {
	var t Tail
	if w.Off >= int64(len(w.Buf)) {
		return t
	}
	rest := bytes.TrimRight(w.Buf[w.Off:], "\x00")
	t.Bytes = int64(len(rest))
	for at := 0; at < len(rest); at += Align {
		off := w.Off + int64(at)
		if h, ok := DecodeHeader(w.Buf[off:], w.ID, off); ok {
			t.Headers++
			t.Durable = max(t.Durable, h.Durable)
		}
	}
	return t
}
