package frame

import "bytes"

// Walker walks the chain of frames of one file held in memory.
type Walker struct {
	ID  Identity
	Buf []byte // the file from its first byte on
	Off int64  // offset of the next frame; after Next returned false, where the chain ends
	Sum uint32 // Sum of the last frame walked: what the next one's Prev must be

	// Reused says that the file was used before: what stands behind the chain may be of
	// that use, and a frame of KindEnd says where the chain ends.
	Reused bool
}

// Next returns the next frame of the chain, or false where it ends: at the end
// of Buf, or at bytes that are not an intact frame linked to the one before.
func (w *Walker) Next() (Header, []byte, bool) {
	if w.Off > int64(len(w.Buf)) {
		return Header{}, nil, false
	}
	h, payload, ok := Decode(w.Buf[w.Off:], w.ID, w.Off)
	if !ok || h.Prev != w.Sum || h.Kind == KindEnd {
		return Header{}, nil, false
	}
	w.Off += int64(h.Length)
	w.Sum = h.Sum
	return h, payload, true
}

// Tail describes the bytes behind the end of a chain.
type Tail struct {
	Bytes   int64  // up to the last byte that is of this use of the file; 0 if there is none
	Headers int    // intact frame headers found, those of KindEnd left out
	Durable uint64 // greatest durable mark any of them carries
}

// Tail examines what stands behind the place where Next stopped. Pages of
// unsynced frames reach the disk in any order, so intact frames behind a hole are
// legitimate; the caller compares Durable with the hole's position. Only headers
// are checked, which keeps the scan linear even on hostile bytes.
//
// In a new file whatever is not zero was written behind the chain. In one that was used
// before it is what intact headers say; and if the chain does not end where one of KindEnd
// says so, at least a header was.
func (w *Walker) Tail() Tail {
	var t Tail
	if w.Off >= int64(len(w.Buf)) {
		return t
	}
	rest := w.Buf[w.Off:]
	switch h, ok := DecodeHeader(rest, w.ID, w.Off); {
	case !w.Reused:
		rest = bytes.TrimRight(rest, "\x00")
		t.Bytes = int64(len(rest))
	case len(rest) >= HeaderBytes && !(ok && h.Kind == KindEnd):
		t.Bytes = HeaderBytes
	}
	for at := 0; at < len(rest); at += Align {
		off := w.Off + int64(at)
		h, ok := DecodeHeader(w.Buf[off:], w.ID, off)
		if !ok || h.Kind == KindEnd {
			continue
		}
		t.Headers++
		t.Durable = max(t.Durable, h.Durable)
		if w.Reused {
			t.Bytes = min(int64(at)+int64(h.Length), int64(len(rest)))
		}
	}
	return t
}
