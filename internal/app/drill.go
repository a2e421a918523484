package app

import (
	"encoding/json"
	"net/http"

	"holdfast/internal/providers"
)

// withDrill adds the switch of the scripted models, for people who try Holdfast on their machine:
//
//	PUT /drill {"outage": true}    every scripted model fails from now on
//	PUT /drill {"outage": false}   they answer again
//	GET /drill                     says which it is
//
// Without a scripted model there is no switch.
func withDrill(next http.Handler, clients map[string]providers.Provider) http.Handler {
	var scripts []*providers.Script
	for _, client := range clients {
		if s, ok := client.(*providers.Script); ok {
			scripts = append(scripts, s)
		}
	}
	if len(scripts) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // no ServeMux, as that redirects paths
		switch {
		case r.URL.Path == "/drill" && r.Method == http.MethodPut:
			setDrill(w, r, scripts)
		case r.URL.Path == "/drill" && r.Method == http.MethodGet:
			sayDrill(w, scripts[0].Outage())
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func setDrill(w http.ResponseWriter, r *http.Request, scripts []*providers.Script) {
	var order struct{ Outage *bool }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&order); err != nil || order.Outage == nil {
		http.Error(w, `want {"outage": true} or {"outage": false}`, http.StatusBadRequest)
		return
	}
	for _, s := range scripts {
		s.SetOutage(*order.Outage)
	}
	sayDrill(w, *order.Outage)
}

func sayDrill(w http.ResponseWriter, outage bool) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]bool{"outage": outage}) // the caller left: nothing to do
}

// keepDrill lets an outage that is being played last beyond a reload.
func keepDrill(old, now map[string]providers.Provider) {
	for name, client := range now {
		was, before := old[name].(*providers.Script)
		s, after := client.(*providers.Script)
		if before && after {
			s.SetOutage(was.Outage())
		}
	}
}
