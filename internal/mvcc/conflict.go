package mvcc

import "github.com/cairndb/cairn/internal/base"

// Err returns the conflict as an error in the words of users; nil stays nil.
func (c *Conflict) Err() error {
	if c == nil {
		return nil
	}
	_, low, _ := base.CutBucketPrefix(c.Low)
	_, high, _ := base.CutBucketPrefix(c.High)
	if high == nil && c.High != nil {
		high = []byte{} // the end of the bucket: no upper bound
	}
	return &base.ConflictError{Low: low, High: high, Seq: c.Seq}
}
