package breaker

import "context"

// Read gives the records as they are now, by strongly consistent reads: for people, not for requests.
func (d *Dynamo) Read(ctx context.Context, candidates ...string) (map[string]Record, error) {
	found := make(map[string]Record, len(candidates))
	for _, c := range candidates {
		r, err := d.get(ctx, c, true)
		if err != nil {
			return nil, err
		}
		found[c] = r
	}
	return found, nil
}
