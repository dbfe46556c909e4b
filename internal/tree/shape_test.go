package tree

import "testing"

func TestShape(t *testing.T) {
	const limit = 64 << 20
	var s Shape
	for _, want := range []int{MinSegment, 1 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20, 64 << 20} {
		s.Note(nil, limit)
		if size, _ := s.Next(0, 0, limit); size != want {
			t.Errorf("%d bytes, want %d", size, want)
		}
	}
	for _, c := range []struct{ need, count, limit, size, records int }{
		{0, 0, limit, MinSegment, MinSegment/72 + 64},             // nothing is known
		{100, 1, limit, MinSegment, MinSegment/72 + 64},           // it is small
		{1 << 20, 1, limit, 4 << 20, (4<<20)/72 + 64},             // room for a few more of them
		{15 << 20, 10_000, limit, 15 << 20, (15<<20)/1179 + 64},   // only itself: its records are known
		{15 << 20, 10_000, 1 << 20, 15 << 20, (15<<20)/1179 + 64}, // however small the limit is
		{100_000, 5000, 64 << 10, 102_400, 102_400/16 + 64},       // no record is taken for less than 16 bytes
		{MinSegment, 100_000, limit, 1 << 20, 100_064},            // room for all of its own
	} {
		var s Shape
		if size, records := s.Next(c.need, c.count, c.limit); size != c.size || records != c.records {
			t.Errorf("need %d, count %d, limit %d: %d bytes, %d records, want %d, %d", c.need, c.count, c.limit, size, records, c.size, c.records)
		}
	}
}
