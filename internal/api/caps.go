package api

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// prepare starts reading what the request will be judged by, while its body is still to be read.
func (h *handler) prepare(ctx context.Context, tenant string) {
	h.deps.Router.Prepare(ctx)
	if h.deps.Caps != nil {
		h.deps.Caps.Prepare(ctx, tenant)
	}
}

// capped refuses a tenant who has spent what he may today. No SDK should come back by itself before the day ends.
func (h *handler) capped(ctx context.Context, tenant string) error {
	if h.deps.Caps == nil {
		return nil
	}
	until, reached := h.deps.Caps.Reached(ctx, tenant)
	if !reached {
		return nil
	}
	const quota = "insufficient_quota"
	return &fault{
		status: http.StatusTooManyRequests, kind: quota, code: quota, retry: max(time.Until(until), time.Second),
		message: fmt.Sprintf("The tenant %s has reached its own daily limit of spending at this gateway. "+
			"No model was asked; the limit begins anew at %s (midnight UTC).", tenant, until.UTC().Format(time.RFC3339)),
	}
}
