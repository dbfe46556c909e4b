package block

import "github.com/cairndb/cairn/internal/base"

// Stored is a block as it stands in a file, on its way to another one: nothing of it is decompressed but its keys. Its
// pages were verified.
type Stored struct {
	Keys      Keys
	FormBytes int    // of Keys, in memory
	Pages     []byte // the key page and, if there is a value, the value page, without their checksums
	KeyEnd    int    // where the key page ends in Pages
}

// Set makes Pages those of the block whose key page begins b, which stands at off, and takes keys bytes of it; the value
// page is the rest. It verifies both.
func (s *Stored) Set(id Identity, off int64, b []byte, keys int) error {
	if _, err := id.ParsePage(b[:keys], PageKeys, off); err != nil {
		return err
	}
	s.Pages = append(s.Pages[:0], b[:keys-sumBytes]...)
	s.KeyEnd = len(s.Pages)
	if len(b) == keys {
		return nil
	}
	v, err := id.ParsePage(b[keys:], PageValues, off+int64(keys))
	if err != nil {
		return err
	}
	if v.RawBytes != s.Keys.ValueBytes() || v.Codec == None && len(v.payload) != v.RawBytes {
		return base.Corruptf(id.name, off, "value page holds %d bytes, the keys say %d", v.RawBytes, s.Keys.ValueBytes())
	}
	s.Pages = append(s.Pages, b[keys:len(b)-sumBytes]...)
	return nil
}

// Codec returns the codec of its pages that are compressed, None if neither is; ok is false if there are two.
func (s *Stored) Codec() (c Codec, ok bool) {
	c = Codec(s.Pages[0])
	if s.KeyEnd == len(s.Pages) {
		return c, true
	}
	v := Codec(s.Pages[s.KeyEnd])
	return max(c, v), c == v || c == None || v == None
}

// AppendBody appends the key page (i 0) or the value page (i 1, if there is one) to dst, as the function of that name
// does. What is stored as it is may have been so because nothing was to be compressed: c is tried then.
func (s *Stored) AppendBody(dst []byte, i int, c Codec) []byte {
	page := s.Pages[:s.KeyEnd]
	if i == 1 {
		page = s.Pages[s.KeyEnd:]
	}
	if Codec(page[0]) != None || c == None {
		return append(dst, page...)
	}
	return AppendBody(dst, PageType(page[1]), c, page[HeaderBytes:])
}
