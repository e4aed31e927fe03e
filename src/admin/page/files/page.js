// SPDX-License-Identifier: ISC
"use strict";
