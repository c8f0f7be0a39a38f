// SPDX-License-Identifier: MIT
// A flame graph that is a picture alone.

import { Picture } from '../js/picture.js';

new Picture(/** @type {SVGSVGElement} */ (document.querySelector('svg.flame'))).listenToAll();
