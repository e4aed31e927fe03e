/* SPDX-License-Identifier: ISC */
#include "model/process.h"

#include <string.h>

#include "model/registry.h"

void process_init(struct process *process, struct random *random, struct snapshot *config)
{
	process->config = config;
	process->settings = snapshot_settings(config);
	process->cancel_keys.peer_id = (uint16_t)process->settings->peer_id;
	handles_init(&process->handles);
	TAILQ_INIT(&process->peers);
	TAILQ_INIT(&process->own_connections.logins);
	random_fill(random, process->mock_salt, sizeof(process->mock_salt));
}

bool process_has_logins(const struct process *process)
{
	const struct registry *each;

	EACH_REGISTRY (each, process) {
		if (!TAILQ_EMPTY(&each->logins))
			return true;
	}
	return false;
}

void process_use_handles(struct process *process)
{
	process->show_streams++;
}

void process_give_handles_back(struct process *process)
{
	if (--process->show_streams == 0)
		handles_clear(&process->handles);
}

void process_free(struct process *process)
{
	cancel_keys_free(&process->cancel_keys);
	handles_free(&process->handles);
	lock_end(&process->slow.lock);
	snapshot_unref(process->config);
	explicit_bzero(process->mock_salt, sizeof(process->mock_salt));
}
