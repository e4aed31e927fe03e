/* SPDX-License-Identifier: ISC */
#include "net/crew/mailbox.h"

void mailbox_put(struct mailbox *mailbox, struct mail *mail)
{
	mail->next = atomic_load_explicit(&mailbox->newest, memory_order_relaxed);
	/*
	 * Sequentially consistent for mailbox_rouse(), which includes release: the reader sees
	 * what the sender has written into the mail. A failed exchange has published nothing.
	 */
	while (!atomic_compare_exchange_weak_explicit(&mailbox->newest, &mail->next, mail,
		memory_order_seq_cst, memory_order_relaxed))
		;
}

void mailbox_take(struct mailbox *mailbox)
{
	/* Acquire: what the senders have written into their mail is seen from here on. */
	struct mail *mail =
		atomic_exchange_explicit(&mailbox->newest, NULL, memory_order_acquire);
	struct mail *oldest = NULL, **end = &mailbox->taken;

	while (mail) {
		struct mail *older = mail->next;

		mail->next = oldest;
		oldest = mail;
		mail = older;
	}
	while (*end)
		end = &(*end)->next;
	*end = oldest;
}

struct mail *mailbox_next(struct mailbox *mailbox)
{
	struct mail *mail = mailbox->taken;

	if (!mail)
		return NULL;
	mailbox->taken = mail->next;
	mailbox->received++;
	return mail;
}
